"""The schemas take every packaged file, refuse what specsweep refuses, and are written down as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from sweeper.__main__ import main
from sweeper.config import GROUPS, load
from sweeper.errors import ConfigError, ExitCode
from sweeper.schemas.files import FOLDER, schemas, text_of
from sweeper.schemas.own_file import GROUPS as OWN_GROUPS

CONF = Path(__file__).parents[2] / "conf"
FILES = sorted(CONF.rglob("*.yaml"))
SGLANG = ["preset=sglang_any", "host.ssh.destination=gpu1", "model.path=/m"]
_LINE = re.compile(r"^# yaml-language-server: \$schema=(\S+)$", re.MULTILINE)

MISTAKES = {
    # What an editor underlines: the group of the file, its text.
    "an unknown name": ("host", "kind: local\nprt_low: 18200"),
    "a word of a list that is none": ("host", "kind: shh"),
    "text for a number": ("host", "port_low: many"),
    "a port that does not exist": ("host", "port_high: 70000"),
    "a folder that is relative": ("host", "state_dir: state"),
    "an unknown name further down": ("host", "ssh: {destination: gpu1, identityfile: x}"),
    "one GPU instead of a list": ("host", "gpus: 0"),
    "a number below its least": ("workload", "concurrency: 0"),
    "a fraction for a whole number": ("workload", "max_tokens: 10.5"),
    "yes for true": ("workload", "chat: 'yes'"),
    "a prompt without its text": ("workload", "prompts: [{id: a}]"),
    "a sampler that does not exist": ("study", "sampler: annealing"),
    "a storage that is no address": ("study", "storage: optuna.db"),
    "a name with a blank": ("study", "name: my night"),
    "a negative time": ("tracking", "sync_s: -1"),
    "a section that does not exist": ("preset", "budgets: {trials: 3}"),
    "no trials": ("preset", "budget: {trials: 0}"),
    "a time of day as a number": ("preset", "budget: {until: 700}"),
    "a time of day that is none": ("preset", "budget: {until: seven}"),
    "an event that does not exist": ("preset", "notify: {events: [done]}"),
    "a webhook that is no address": ("preset", "notify: {webhook: example.org}"),
    "an ending that does not exist": ("preset", "on_finish: restart"),
    "a misspelt sweep": ("space", "threads: choise(1, 2)"),
    "an open bracket": ("space", "threads: choice(1, 2"),
    "a range of words": ("space", "threads: range(one, two)"),
    "an empty choice": ("space", "threads: choice()"),
    "null": ("space", "threads: null"),
    "a flag as the shell writes it": ("space", "--threads: 1"),
    "a condition that is no mapping": ("space", "when: {threads: spec_type}"),
    "a variable's name with a dash": ("space", "env: {OMP-WAIT: 1}"),
    "a drafter that does not exist": ("space-llamacpp", "spec_type: choice(ngram-simpel, ngram-mod)"),
    "a fraction in a choice of whole numbers": ("space-llamacpp", "threads: choice(1, 2.5)"),
    "an older spelling": ("space-llamacpp", "draft_max: 4"),
    "an algorithm that does not exist": ("space-sglang", "speculative_algorithm: choice(EAGLE4, none)"),
    "more than a flag takes": ("space-sglang", "speculative_eagle_topk: 100"),
    "a word for a bare flag": ("space-sglang", "disable_cuda_graph: choice(on, off)"),
    "another spelling": ("space-sglang", "tp: 8"),
    "a flag that each launch sets": ("engine", "name: sglang\nflags: {port: 30000}"),
    "an engine that does not exist": ("engine", "name: sglnag"),
    "a flag's wrong type": ("engine", "name: llamacpp\nflags: {threads: two}"),
}
OWN_MISTAKES = {
    "a folder that is no text": "config_dir: 3",
    "a path that does not exist": "budget.trails: 5",
    "a number that is none": "budget.trials: many",
    "a section's unknown name": "budget: {trails: 5}",
    "an option that is a list": "preset: [a, b]",
    "a sweep that is none": "space.threads: choise(1, 2)",
    "a variable's name with a dash": "engine.env.OMP-WAIT: '1'",
    "a flag as the shell writes it": "engine.flags.--threads: 1",
    "an ending that does not exist": "on_finish: restart",
}
OWN_TAKEN = """
config_dir: .
preset: night
study/sampler: grid
host: gpu1
engine:
  flags: {threads: 2}
budget.until: '07:00'
budget: {hours: 8}
study.dir: /data/sweeps
host.ssh.port: 2222
engine.flags.threads: 2
engine.env.OMP_NUM_THREADS: 4
space.threads: choice(1, 2)
space.env.NCCL_ALGO: [Ring, Tree]
space.when.threads: {spec_type: [ngram-mod]}
more_workloads.busy: {concurrency: 8}
more_workloads.busy.concurrency: 4
objective: {output_throughput: 2, busy.output_throughput: 1}
model.path: ${oc.env:HOME}/m
"""
TAKEN = {
    "all sweeps": (
        "space",
        """
        a: choice(1, 2)
        b: range(1, 8)
        c: range(0, 9, step=2)
        d: interval(0.8, 0.95)
        e: int(interval(1, 8))
        f: tag(log, interval(0.001, 1))
        g: [1, 2]
        h: ngram-mod
        i: "'a,b'"
        j: ${oc.env:X}
        k: false
        l: 1, 2
        """,
    ),
    "known flags": (
        "space-sglang",
        """
        speculative_algorithm: choice(EAGLE3, 'none')
        speculative_num_steps: range(2, 9)
        tp_size: ???
        attention_backend: [triton, fa3]
        mem_fraction_static: interval(0.8, 0.9)
        not_known_here: choice(x, y)
        disable_cuda_graph: choice(false, true)
        cuda_graph_bs: 1 2 4
        """,
    ),
    "known flags of llama.cpp": (
        "space-llamacpp",
        """
        spec_type: choice(ngram-simple, 'ngram-mod,ngram-map-k')
        threads: int(interval(1, 4))
        """,
    ),
    "references": ("host", "port_low: ${oc.env:PORT}\nssh:\n  destination: ???"),
    "a night": ("preset", "budget: {until: '07:00 Europe/Berlin', hours: 8}\nhost: {gpus: [0, 1]}"),
    "two weights": ("preset", "objective: {output_throughput: 2, busy.output_throughput: 1}"),
}


def errors(name: str, text: str) -> list[str]:
    validator = Draft7Validator(schemas()[name])
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize("name", schemas())
def test_a_schema_is_one_and_is_written_down_as_it_is(name: str) -> None:
    Draft7Validator.check_schema(schemas()[name])
    kept = (CONF / FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert kept == text_of(schemas()[name]), "write it anew: specsweep schema --write conf"


def test_no_schema_is_left_over() -> None:
    assert sorted(file.stem for file in (CONF / FOLDER).iterdir()) == list(schemas())


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONF)))
def test_a_packaged_file_names_its_schema_and_is_valid(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    named = _LINE.search(text)
    assert named, "an editor needs the line: # yaml-language-server: $schema=..."
    schema = (file.parent / named[1]).resolve()
    assert schema.is_file()
    group = file.relative_to(CONF).parts[0]
    assert schema.stem.startswith("preset" if group == file.name else group)
    assert errors(schema.stem, text) == []


@pytest.mark.parametrize(("name", "text"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused(name: str, text: str) -> None:
    assert errors(name, text)


@pytest.mark.parametrize(("name", "text"), TAKEN.values(), ids=TAKEN)
def test_what_is_right_is_taken(name: str, text: str) -> None:
    assert errors(name, text) == []


@pytest.mark.parametrize("text", OWN_MISTAKES.values(), ids=OWN_MISTAKES)
def test_a_mistake_in_the_own_file_is_refused(text: str) -> None:
    assert errors("specsweep", text)


def test_what_the_own_file_may_say_is_taken() -> None:
    assert errors("specsweep", OWN_TAKEN) == []
    assert GROUPS == OWN_GROUPS


@pytest.mark.slow
@pytest.mark.compose
@pytest.mark.parametrize("text", OWN_MISTAKES.values(), ids=OWN_MISTAKES)
def test_the_own_files_mistakes_are_refused_by_specsweep_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "specsweep.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"specsweep\.yaml"):
        load([])


@pytest.mark.slow
@pytest.mark.compose
@pytest.mark.parametrize(("name", "text"), MISTAKES.values(), ids=MISTAKES)
def test_specsweep_itself_refuses_it_too(tmp_path: Path, name: str, text: str) -> None:
    group = name.partition("-")[0]
    (tmp_path / group).mkdir()
    head = "# @package _global_\n" if group == "preset" else ""
    (tmp_path / group / "mine.yaml").write_text(head + text, encoding="utf-8")
    others = {"space-sglang": SGLANG}.get(name, [] if group == "preset" else ["preset=llamacpp_ngram"])
    with pytest.raises(ConfigError) as told:
        load([*others, f"{group}=mine"], tmp_path)
    assert not any(line.startswith(("host.ssh.destination", "model.path")) for line in told.value.mistakes)


def test_the_command_writes_them_into_a_folder_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", "--write", str(tmp_path / "my")]) == ExitCode.OK
    assert "../schema/GROUP.json" in capsys.readouterr().out
    assert sorted(file.stem for file in (tmp_path / "my" / FOLDER).iterdir()) == list(schemas())
    assert main(["schema", "host"]) == ExitCode.OK
    told: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)
    assert told == schemas()["host"]
    assert main(["schema", "hosts"]) == ExitCode.USAGE
    assert "did you mean host?" in capsys.readouterr().err
