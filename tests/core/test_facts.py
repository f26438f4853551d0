"""Before the first launch the server is asked which flags it has: a misspelt one costs no launch."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from launchers.base import CommandResult
from sweeper.commands.notes import notes_on
from sweeper.config import load
from sweeper.engines.base import HostFacts
from sweeper.engines.registry import engine_for
from sweeper.engines.sglang import SGLang
from sweeper.errors import ConfigError
from sweeper.facts import facts_now, read_host_facts
from sweeper.provenance import provenance_of, revision_of
from sweeper.spec import SweepSpec
from tests.server.fake_launcher import FakeLauncher

pytestmark = pytest.mark.compose

SNAPSHOT = "/hub/models--org--draft/snapshots/" + "0123456789abcdef" * 2 + "01234567"
POLICY = "Enabled, 600.00 W, [N/A], [N/A], Disabled, Disabled, Default"
HELP = b"""usage: server
-m,  --model FNAME            the model
-t,  --threads N              threads
--parallel N, --ctx-size N, --flash-attn [on|off|auto]
--spec-draft-model FNAME
--spec-type none,ngram-simple,ngram-map-k,ngram-map-k4v
--spec-ngram-simple-size-n N, --spec-ngram-simple-size-m N
--spec-ngram-map-k-size-n N, --spec-ngram-map-k-size-m N
--spec-ngram-map-k4v-size-n N, --spec-ngram-map-k4v-size-m N, --spec-ngram-map-k4v-min-hits N
"""


@dataclass
class Answers:
    """A host whose server answers --version and --help; the model is there."""

    help: CommandResult = field(default_factory=lambda: CommandResult(0, HELP, b""))
    gpus: str = ""
    missing: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    def launcher(self) -> FakeLauncher:
        return _Scripted(self)


class _Scripted(FakeLauncher):
    def __init__(self, answers: Answers) -> None:
        super().__init__("http://127.0.0.1:1", 1)
        self.answers = answers

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        self.answers.asked.append(argv[-1])
        if argv[0] == "nvidia-smi":
            return self._nvidia_smi(argv)
        if argv[-1] == "--version":
            return CommandResult(0, b"", b"version: 1234 (abcdef)\nbuilt with cc 13.3.0\n")
        if argv[-1] in self.answers.missing:
            return CommandResult(3, b"", b"no such file or folder\n")
        if argv[-1] == "--help":
            return self.answers.help
        place = SNAPSHOT if argv[-1] == "org/draft" else argv[-1]
        return CommandResult(0, f"0123456789abcdef0123  -\n{place}\n".encode(), b"")

    def _nvidia_smi(self, argv: tuple[str, ...]) -> CommandResult:
        """What is told of two GPUs; a field that the driver does not know spoils the whole answer."""
        fields = argv[1].removeprefix("--query-gpu=")
        if not self.answers.gpus:
            return CommandResult(127, b"", b"not found")
        if fields == "name":
            return CommandResult(0, b"RTX\nRTX\n", b"")
        return CommandResult(2 if "not a valid field" in self.answers.gpus else 0, self.answers.gpus.encode(), b"")


@functools.cache
def composed(*overrides: str) -> SweepSpec:
    return load(["model=gguf", "model.path=/m.gguf", *overrides]).spec


def facts_of(answers: Answers, *overrides: str) -> HostFacts:
    return read_host_facts(composed(*overrides), engine_for("llamacpp"), answers.launcher())


def mistakes(answers: Answers, *overrides: str) -> tuple[str, ...]:
    """What the host says of a sweep with these overrides; empty when it is content."""
    try:
        facts_of(answers, *overrides)
    except ConfigError as error:
        return error.mistakes
    return ()


def test_every_flag_that_the_server_does_not_list_is_named() -> None:
    lines = mistakes(Answers(), "space.spec_typ=choice(a,b)", "engine.flags.foo=3", "engine.flags.flash_atn=on")
    assert sorted(lines) == [
        "engine.flags.flash_atn: the server has no flag --flash-atn (did you mean flash_attn?)",
        "engine.flags.foo: the server has no flag --foo",
        "space.spec_typ: the server has no flag --spec-typ (did you mean spec_type?)",
    ]


def test_flags_that_the_server_lists_are_accepted_in_any_column_of_its_help() -> None:
    assert mistakes(Answers(), "engine.flags.flash_attn='on'") == ()


def test_variables_of_the_environment_are_not_taken_for_flags() -> None:
    assert mistakes(Answers(), "space.env.OMP_WAIT_POLICY=choice(active,passive)") == ()


def test_an_unknown_flag_is_told_before_the_model_is_prepared() -> None:
    answers = Answers()
    assert mistakes(answers, "engine.flags.foo=3", "model.prepare=[fetch,it]")
    assert answers.asked == ["--version", "--help"]


@pytest.mark.parametrize(
    "answer",
    [
        CommandResult(0, b"", b""),
        CommandResult(0, b"my wrapper: --help shows this text\n", b""),
        CommandResult(2, HELP, b""),
        CommandResult(0, b"\xff\xfe--", b"\x00"),
    ],
)
def test_without_help_of_the_server_nothing_is_refused(answer: CommandResult) -> None:
    assert mistakes(Answers(help=answer), "engine.flags.foo=3") == ()


def test_only_what_never_has_an_effect_is_told_and_once() -> None:
    given = ["host.ssh.destination=gpu1", "model.path=/m", "space.speculative_draft_model_path=hub/draft"]
    spec = load(["preset=sglang_any", *given, "space.num_continuous_decode_steps=choice(1,4)"]).spec
    notes = notes_on(spec, engine_for("sglang"), HostFacts(engine_version="0.5.20"))
    assert [note.partition(":")[0] for note in notes if not note.startswith("speculative_draft_model_path")] == [
        "num_continuous_decode_steps"
    ]


class _Missing(_Scripted):
    """A host on which no small file can be read."""

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        if argv[0] == "head":
            return CommandResult(1, b"", b"head: no such file")
        if argv[0] == "nvidia-smi":
            return CommandResult(0, b"RTX\nRTX\n", b"")
        if argv[1:2] == ("-c",) and "sglang" in argv[-1]:
            return CommandResult(0, b"sglang 0.5.20\n", b"")
        if argv[-1] == "--help":
            return CommandResult(1, b"", b"")
        return CommandResult(0, b"0123456789abcdef0123  -\n/m\n", b"")


def test_a_draft_that_is_not_there_and_a_gpu_that_does_not_exist_cost_no_launch() -> None:
    given = ["host.ssh.destination=gpu1", "model.path=/m", "space.speculative_draft_model_path=/models/nowhere"]
    spec = load(["preset=sglang_any", *given, "host.gpus=[0,2]"]).spec
    with pytest.raises(ConfigError) as caught:
        read_host_facts(spec, engine_for("sglang"), _Missing(Answers()))
    lines = caught.value.mistakes
    assert any(
        "space.speculative_draft_model_path: /models/nowhere/config.json cannot be read" in line for line in lines
    )
    assert any(line.startswith("model.path: /m/config.json cannot be read") for line in lines)
    assert any("host.gpus: 2: host here has the GPUs 0 to 1" in line for line in lines)


def test_the_engines_build_driver_and_gpu_policy_are_known() -> None:
    build = facts_of(Answers(gpus=f"0, 570.86.10, {POLICY}\n1, 570.86.10, {POLICY}\n")).build
    assert build == {
        "commit": "abcdef",
        "compiler": "cc 13.3.0",
        "driver": "570.86.10",
        "gpu_policy": (
            "persistence Enabled, power limit 600.00 W, ECC Disabled, MIG Disabled, compute mode Default"
        ),
    }


def test_gpus_that_are_set_differently_are_told_apart_if_they_are_in_use() -> None:
    lines = f"0, 570.86.10, {POLICY}\n1, 570.86.10, {POLICY.replace('600', '300')}\n"
    assert facts_of(Answers(gpus=lines)).build["gpu_policy"].count("GPU ") == 2
    assert "300.00 W" not in facts_of(Answers(gpus=lines), "host.gpus=[0]").build["gpu_policy"]


@pytest.mark.parametrize(
    "answer", ["", "Field is not a valid field to query.", "Unable to determine the device handle\n", "0, 1, 2\n"]
)
def test_a_host_that_tells_nothing_of_its_gpus_is_no_mistake(answer: str) -> None:
    assert set(facts_of(Answers(gpus=answer)).build) == {"commit", "compiler"}


def test_drafts_have_a_fingerprint_and_a_revision_where_one_is_known() -> None:
    answers = Answers(missing=("/no/such",))
    build = facts_of(answers, "space.spec_draft_model=choice(/d.gguf,org/draft,/no/such)").build
    assert {name: value for name, value in build.items() if name.startswith("draft ")} == {
        "draft /d.gguf": "0123456789abcdef",
        "draft org/draft": f"0123456789abcdef, revision {SNAPSHOT.rpartition('/')[2]}",
    }


def test_two_facts_of_one_output_are_asked_for_once() -> None:
    answers, spec, engine = Answers(), composed(), engine_for("llamacpp")
    facts = read_host_facts(spec, engine, answers.launcher())
    assert answers.asked.count("--version") == 1
    assert facts_now(spec, engine, answers.launcher(), facts) == facts
    assert answers.asked.count("--version") == 2, "after the next launch it is asked anew"


def test_a_models_revision_is_the_commit_of_its_snapshot() -> None:
    assert revision_of(SNAPSHOT) == revision_of(SNAPSHOT + "/") == SNAPSHOT.rpartition("/")[2]
    assert revision_of("/models/snapshots/main") == revision_of("/m.gguf") == ""


def test_a_record_says_where_its_numbers_come_from() -> None:
    spec = composed()
    facts = HostFacts(engine_version="1", gpu_names=("RTX", "RTX"), build={"driver": "570", "commit": "abc"})
    told = provenance_of(spec, facts, "gpu1")
    assert told["prompts"].startswith(f"{len(spec.workload.prompts)} prompts, sha256 ")
    assert (told["driver"], told["commit"], told["gpus"], told["host"]) == ("570", "abc", "RTX, RTX", "gpu1")
    assert told["specsweep_version"]
    assert "cuda" not in told


def test_answers_longer_than_the_context_are_refused_before_the_first_launch() -> None:
    lines = mistakes(Answers(), "engine.flags.ctx_size=40")
    assert lines == ("workload.max_tokens: 56 do not fit into the context of 40 tokens",)
    assert mistakes(Answers(), "engine.flags.ctx_size=57") == ()


def test_a_server_of_more_gpus_than_there_are_is_refused() -> None:
    given = ("preset=sglang_any", "host.ssh.destination=gpu1", "space.speculative_draft_model_path=hub/draft")
    words = ("model.name=m", "engine.flags.tp_size=4")
    launcher = Answers(gpus="0, 580, x\n").launcher()
    spec = load([*given, "model.path=hub/m", *words]).spec
    with pytest.raises(ConfigError, match="the server needs 4 GPUs on each host"):
        read_host_facts(spec, _Versioned(), launcher)


class _Versioned(SGLang):
    """SGLang whose program answers like the scripted one."""

    def version_argv(self, command: Sequence[str]) -> tuple[str, ...]:
        return (*command, "--version")

    def parse_version(self, output: str) -> str:
        return "0.5.15.post1"
