"""The chat template is applied on the host, within what a command line and its answer can hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from launchers.base import CommandResult, Launcher
from sweeper.config import load
from sweeper.engines.base import Engine, HostFacts
from sweeper.engines.registry import engine_for
from sweeper.errors import ConfigError
from sweeper.measuring.load import Load
from sweeper.measuring.rendering import rendered_loads
from sweeper.spec import SweepSpec
from sweeper.workload_spec import Prompt, WorkloadSpec

MAX_ARGUMENT = 131_072
MAX_ANSWER = 8 * 1024 * 1024
FACTS = HostFacts(model_path="/models/m")


class FakeHost:
    """Applies a template of 300 tokens and one token per character, as Linux and a launcher let it."""

    host = "gpu1"

    def __init__(self, exit_code: int = 0, lost: int = 0) -> None:
        self.calls: list[list[str]] = []
        self.exit_code = exit_code
        self.lost = lost

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        assert all(len(argument.encode()) < MAX_ARGUMENT for argument in argv)
        assert sum(len(argument.encode()) + 1 for argument in argv) < 2 * 1024 * 1024
        texts = json.loads(argv[-1])
        self.calls.append(texts)
        rows = [ids(text) for text in texts[self.lost :]]
        answer = b"\nspecsweep-token-ids " + json.dumps(rows).encode()
        assert len(answer) < MAX_ANSWER
        return CommandResult(self.exit_code, answer, b"ImportError: no transformers")


def ids(text: str) -> list[int]:
    return [100_000] * 300 + [ord(character) for character in text]


def workload(texts: Sequence[str], name: str = "w", **changed: object) -> WorkloadSpec:
    settings: dict[str, object] = {
        "name": name,
        "prompts": tuple(Prompt(id=str(n), text=text) for n, text in enumerate(texts)),
        "max_tokens": 8,
        "temperature": 0.0,
        "seed": 0,
        "repeats": 2,
        "request_timeout_s": 60.0,
    }
    return WorkloadSpec.model_validate(settings | changed)


def rendered(host: FakeHost, *workloads: WorkloadSpec, engine: Engine | None = None) -> tuple[Load, ...]:
    asked = SimpleNamespace(command=("python3", "-m", "sglang.launch_server"), flags={}, env={})
    spec = cast(SweepSpec, SimpleNamespace(engine=asked, workloads=workloads))
    return rendered_loads(spec, engine or engine_for("sglang"), cast(Launcher, host), FACTS)


def sent(load: Load) -> list[Prompt]:
    return [load.warmup, *(prompt for prompts in load.passes for prompt in prompts)]


def test_a_usual_sweep_takes_one_call_for_all_workloads_and_passes() -> None:
    host = FakeHost()
    loads = rendered(host, workload(["a", "b"]), workload(["c", "d"], "busy", repeats=4))
    assert len(host.calls) == 1
    assert all(prompt.token_ids == tuple(ids(prompt.text)) for load in loads for prompt in sent(load))
    assert [len(load.passes) for load in loads] == [2, 4]


def test_equal_texts_are_sent_to_the_host_once() -> None:
    host = FakeHost()
    rendered(host, workload(["a", "b"], repeats=5, fresh_prefixes=False), workload(["a"], "other", repeats=1))
    (texts,) = host.calls
    assert len(set(texts)) == len(texts)
    assert sum(text in ("a", "b") for text in texts) == 2


@pytest.mark.parametrize("character", ["x", "語", "🙂", "'"])
def test_many_prompts_are_split_over_calls_that_the_host_can_take(character: str) -> None:
    host = FakeHost()
    load = rendered(host, workload([f"{n} {character * 600}" for n in range(300)]))[0]
    assert len(host.calls) > 1
    assert all(prompt.token_ids == tuple(ids(prompt.text)) for prompt in sent(load))


def test_many_short_prompts_do_not_outgrow_the_answer() -> None:
    host = FakeHost()
    rendered(host, workload([f"p{n}" for n in range(800)]))
    assert max(map(len, host.calls)) <= 500


def test_a_text_that_no_command_line_holds_is_one_clear_error_before_any_call() -> None:
    host = FakeHost()
    with pytest.raises(ConfigError, match=r"begins 'kurz and then .* 180,01. bytes as JSON") as caught:
        rendered(host, workload(["fine", "kurz and then " + "語" * 30_000]))
    assert len(caught.value.mistakes) == 1
    assert host.calls == []


def test_bare_text_is_left_alone() -> None:
    host = FakeHost()
    bare, chat = rendered(host, workload(["a"], chat=False), workload(["b"], "busy"))
    assert all(prompt.token_ids == () for prompt in sent(bare))
    assert all(prompt.token_ids for prompt in sent(chat))
    assert all("January:" not in text for text in host.calls[0])


def test_nothing_is_run_when_all_texts_are_bare() -> None:
    host = FakeHost()
    rendered(host, workload(["a"], chat=False))
    assert host.calls == []


def test_nothing_is_run_for_a_server_that_applies_the_template_itself() -> None:
    host = FakeHost()
    (load,) = rendered(host, workload(["a"]), engine=engine_for("llamacpp"))
    assert host.calls == []
    assert [prompt.text for prompt in load.passes[0]] == ["a"]


def test_a_template_that_fails_says_where_and_why() -> None:
    with pytest.raises(ConfigError, match=r"workload\.chat: .*no transformers \(exit code 1, host gpu1\)"):
        rendered(FakeHost(exit_code=1), workload(["a"]))


def test_too_few_answers_are_no_answer() -> None:
    with pytest.raises(ConfigError, match="4 answers to 5 prompts"):
        rendered(FakeHost(lost=1), workload(["a", "b"]))


@pytest.mark.compose
def test_the_packaged_workloads_take_one_call() -> None:
    given = ("host.ssh.destination=gpu1", "model.path=/m", "space.speculative_draft_model_path=/d")
    edit = "more_workloads.edit.prompts_file=copy_edit_long"
    busy = ("more_workloads.busy.concurrency=16", "engine.flags.max_running_requests=16")
    spec = load(["preset=sglang_any", edit, *busy, *given]).spec
    host = FakeHost()
    loads = rendered_loads(spec, engine_for("sglang"), cast(Launcher, host), FACTS)
    assert len(loads) == 3
    assert len(host.calls) == 1
