"""`specsweep init`: what is written composes and plans at once, says so, and overwrites nothing."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from sweeper.__main__ import main
from sweeper.config import load
from sweeper.errors import ConfigError, ExitCode
from sweeper.own_folder.answers import Answers, answers_of
from sweeper.own_folder.files import files_of
from sweeper.space import num_combinations

pytestmark = pytest.mark.compose

PROMPTS = '{"id": "a", "text": "Write a story about a river and the town beside it."}\n'
REMOTE = ["--host", "me@gpu1", "--engine", "sglang", "--model", "/models/Qwen3-8B"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def enter(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path.cwd() / folder)


@pytest.mark.parametrize(
    "words",
    [
        ["--yes"],
        ["--engine", "llamacpp", "--model", "/m/a b.gguf", "--drafter", "/m/d,e.gguf", "--yes"],
        ["--host", "gpu1", "--engine", "llamacpp", "--yes"],
        ["--host", "gpu1", "--yes"],
        [*REMOTE, "--drafter", "/d/a: b", "--drafter", "org/eagle3", "--prompts", "chat"],
        ["--host", "gpu.example.org", "--model", "/models/hf", "--yes"],
        ["--host", "gpu1", "--engine", "vllm", "--yes"],
        ["--host", "gpu1", "--engine", "vllm", "--drafter", "/d/a: b", "--drafter", "org/eagle3", "--yes"],
        ["--engine", "vllm", "--drafter", "ngram", "--yes"],
    ],
)
def test_what_is_written_composes_as_it_is(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["init", "mine", *words]) == ExitCode.OK
    enter("mine", monkeypatch)
    loaded = load([])
    assert loaded.groups["preset"] == loaded.spec.study.name == "night"
    assert (num_combinations(loaded.spec.space) or 0) > 10
    for path in Path().rglob("*.yaml"):
        text = path.read_text()
        schema = re.search(r"^# yaml-language-server: \$schema=(\S+)$", text, re.MULTILINE)
        assert schema, path
        validator = Draft7Validator(json.loads((path.parent / schema[1]).read_text()))
        assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == [], path


def test_the_answers_are_in_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.jsonl").write_text(PROMPTS)
    drafters = ["--drafter", "/d/a", "--drafter", "/d/b"]
    assert main(["init", "x", *REMOTE, *drafters, "--prompts", "mine.jsonl"]) == ExitCode.OK
    enter("x", monkeypatch)
    spec = load([]).spec
    assert spec.host.ssh is not None
    assert (spec.host.name, spec.host.ssh.destination, spec.host.ssh.user) == ("gpu1", "gpu1", "me")
    assert (spec.model.name, spec.model.path, spec.engine.name) == ("Qwen3-8B", "/models/Qwen3-8B", "sglang")
    (path,) = (p for p in spec.space.parameters if p.name == "speculative_draft_model_path")
    assert path.domain.model_dump()["values"] == ("/d/a", "/d/b")
    assert [prompt.text for prompt in spec.workload.prompts] == [yaml.safe_load(PROMPTS)["text"]]


@pytest.mark.parametrize(
    ("drafters", "method", "searched"),
    [
        (["/d/a"], ("eagle3", "none"), {}),
        (["/d/a", "/d/b"], ("eagle3", "none"), {"spec_model": ("/d/a", "/d/b")}),
        (["ngram"], ("ngram", "none"), {"spec_prompt_lookup_min": (1, 2, 3, 4)}),
    ],
)
def test_vllm_gets_a_space_of_its_drafters(
    drafters: list[str],
    method: tuple[str, ...],
    searched: dict[str, tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [word for drafter in drafters for word in ("--drafter", drafter)]
    assert main(["init", "x", "--host", "gpu1", "--engine", "vllm", *words, "--yes"]) == ExitCode.OK
    enter("x", monkeypatch)
    spec = load([]).spec
    assert spec.engine.flags["gpu_memory_utilization"] == 0.9
    found = {p.name: p.domain.model_dump() for p in spec.space.parameters}
    assert found["spec_method"]["values"] == method
    assert found.keys() >= {"spec_tokens", "enforce_eager"}
    assert ("spec_model" in found) == (drafters != ["ngram"])
    assert {name: found[name]["values"] for name in searched} == searched


def test_it_plans_at_once_and_says_which_commands_come_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["init", "a b", "--yes"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert re.findall(r"  (cd .+|specsweep \w+)", told) == [
        "cd 'a b'",
        "specsweep doctor",
        "specsweep plan",
        "specsweep run",
    ]
    enter("a b", monkeypatch)
    before = sorted(Path().rglob("*"))
    assert main(["plan", "--trials", "1"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "night on here" in shown
    assert sorted(Path().rglob("*")) == before
    for command in ("doctor", "plan", "run"):
        assert f"specsweep {command}" in Path("README.md").read_text()


def test_nothing_is_overwritten_without_being_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = tmp_path / "space" / "night.yaml"
    space.parent.mkdir()
    space.write_text("mine\n")
    assert main(["init", "--yes"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "space/night.yaml: exists already; --force replaces it" in told
    assert sorted(tmp_path.rglob("*.yaml")) == [space]
    assert main(["init", "--yes", "--force"]) == ExitCode.OK
    assert "spec_type" in space.read_text()


@pytest.mark.parametrize("folder", ["/proc/x", "/dev/null", "/dev/null/x"])
def test_a_folder_that_cannot_be_is_told_with_what_to_do(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", folder, "--yes"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert re.search(r"DIR: /\S+ .*; .*name (a folder that you may write|another place)", told)


def test_all_that_is_wrong_is_told_before_the_first_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "specsweep.yaml").write_text("preset: mine\n")
    assert main(["init", "--host", "gpu 1", "--engine", "vlm", "--drafter", "ngram"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    parts = ("--model: is missing", "--host: 'gpu 1'", "--engine: 'vlm'", "specsweep.yaml: exists already")
    assert all(part in told for part in parts), told
    assert "ngram" not in told, "it depends on the model, which is missing"


def test_without_a_terminal_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--host", "local", "--engine", "llamacpp", "--model", "packaged"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "--drafter: is missing, and standard input is no terminal" in told
    assert "--prompts: is missing" in told
    assert "--host" not in told
    assert "--yes" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"host": "gpu 1"}, "--host: 'gpu 1' should be local, or where ssh goes"),
        ({"host": "-oProxyCommand=x"}, "--host: '-oProxyCommand=x' should be"),
        ({"engine": "vlm"}, "--engine: 'vlm' should be one of sglang, vllm, llamacpp"),
        ({"engine": "sglang", "model": "packaged"}, "--model: 'packaged' the packaged model is for llamacpp"),
        ({"model": "/m/${oc.env:HOME}"}, "--model:"),
        ({"drafters": " , "}, "--drafter: ',' should be at least one path"),
        ({"drafters": "ngram,/m/d.gguf"}, "--drafter:"),
        ({"engine": "vllm", "drafters": "/m/d,ngram"}, "--drafter: '/m/d,ngram' ngram needs no model beside it"),
        ({"engine": "sglang", "drafters": "ngram"}, "--drafter: 'ngram' ngram is for vllm and llamacpp"),
        ({"prompts": "nowhere.jsonl"}, "--prompts: 'nowhere.jsonl' is no file here"),
    ],
)
def test_a_wrong_answer_is_refused_with_what_would_be_right(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        answers_of(given, None)
    (line,) = caught.value.mistakes
    assert line.startswith(told)


def test_a_file_of_no_prompts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match=r"--prompts: .*line 1"):
        answers_of({"prompts": "bad.jsonl"}, None)


def test_each_question_is_asked_with_a_default_that_fits_the_answers_before() -> None:
    asked = []
    typed = {"host": "gpu1", "model": "/m/x"}

    def ask(question: object, default: str, told: object) -> str:
        asked.append((question.name, default))  # type: ignore[attr-defined]
        return typed.get(question.name, default)  # type: ignore[attr-defined]

    found = answers_of({}, ask)
    assert found == Answers("gpu1", "sglang", "/m/x", ("/models/target-eagle3",), "single_stream")
    assert [name for name, _ in asked] == ["host", "engine", "model", "drafters", "prompts"]
    assert dict(asked)["engine"] == "sglang"


def test_a_name_that_is_no_name_of_a_file_becomes_one() -> None:
    answers = Answers("local", "llamacpp", "/m/../ä$.gguf", ("ngram",), "chat")
    assert all(re.fullmatch(r"[\w./-]+", name, re.ASCII) for name in files_of(answers))
