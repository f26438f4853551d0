"""`specsweep plan` and `specsweep run --dry-run`, as typed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.errors import ExitCode

pytestmark = pytest.mark.compose

SETTINGS = ["preset=sglang_any", "host.ssh.destination=gpu1", "model.path=/models/m"]
NARROWED = [
    "space.speculative_draft_model_path=/models/d",
    "space.speculative_num_steps=choice(2,3)",
    "space.speculative_num_draft_tokens=choice(4,8)",
]
SMALL = [*SETTINGS, *NARROWED]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == ExitCode.OK
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def test_a_dry_run_is_the_plan_and_neither_makes_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = said(capsys, "plan", *SMALL)
    assert said(capsys, "run", "--dry-run", *SMALL) == plan
    assert plan.startswith("Nothing is started, nothing is written.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_is_shown_fits_and_a_command_line_can_be_copied(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = said(capsys, "plan", *SMALL, "engine.env.MY_VAR='two words'", "--trials", "1").splitlines()
    words = {word for line in lines for word in line.split()}
    assert all(len(line) <= width or len(line.split()) <= 3 for line in lines)
    assert {"study", "space", "launches", "end"} <= words
    begin = next(number for number, line in enumerate(lines) if line.startswith("env "))
    end = next(number for number, line in enumerate(lines[begin:], begin) if not line.endswith("\\"))
    copied = shlex.split("\n".join(lines[begin : end + 1]).replace("\\\n", ""))
    assert copied[:6] == ["env", "MY_VAR=two words", "python3", "-m", "sglang.launch_server", "--model-path"]
    assert copied[copied.index("--port") + 1] == "30000"


def test_json_has_the_same_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, "plan", *SMALL, "--json", "--trials", "2"))
    assert found["study"] == "sglang_any"
    assert len(found["launches"]) == 3
    assert found["launches"][1]["commands"][0]["argv"][0] == "python3"
    assert found["space"]["asked"] == found["space"]["looked_at"]
    assert found["end_expected_at"] is None
    assert {"num_launches", "launch_time", "deadlines", "unchecked", "search", "notes"} <= set(found)


def test_no_secret_that_is_set_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*SMALL, "engine.env.HF_TOKEN=t0ps3cret", "--trials", "1"]
    for more in ([], ["--json"]):
        text = said(capsys, "plan", *words, *more)
        assert "t0ps3cret" not in text
        assert "HF_TOKEN" in text


def test_what_a_person_should_know_before_stands_in_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "plan", *SMALL, "engine.env.HF_TOKEN=t0ps3cret", "--trials", "0")
    assert "every user of this machine can read it" in " ".join(text.split())


def test_rows_that_were_left_out_of_a_file_are_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [
        {"conversations": [{"from": "human", "value": text}]} for text in ("Why is the sky blue?", "", "Tell me.")
    ]
    (tmp_path / "chats.json").write_text(json.dumps(asked))
    words = ("workload.prompts_file=./chats.json", "+more_workloads.busy.concurrency=2", "--trials", "0")
    told = "note      prompts_file ./chats.json: 1 of 3 rows is left out: 1 without a question"
    assert said(capsys, "plan", *SMALL, *words).count(told) == 1


def test_each_host_of_a_fleet_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my" / "host").mkdir(parents=True)
    for name in ("a", "b"):
        (tmp_path / "my" / "host" / f"{name}.yaml").write_text(
            f"defaults: [ssh, _self_]\nssh: {{destination: {name}}}\n"
        )
    words = ["preset=sglang_any", "model.path=/models/m", *NARROWED, "hosts=[a,b]", "--config-dir", "my"]
    assert main(["plan", *words]) == ExitCode.USAGE  # a study in a file belongs to one process
    assert "belongs to one process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--trials", "51"], "--trials: 51 should be 0 to 50"),
        (["budget.trials=none"], "budget.trials:"),
        (["budget.until=2020-01-01T07:00"], "is past"),
        (["space.speculative_num_draft_tokens=choice(99)"], "is legal"),
    ],
)
def test_what_is_wrong_is_the_message_of_a_run(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*SMALL, "space.speculative_eagle_topk=2", *words]
    assert main(["plan", *asked]) == ExitCode.USAGE
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
