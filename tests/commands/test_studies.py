"""`specsweep studies`: what there is, what state it is in, and files that are none."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import pytest

from sweeper.__main__ import main
from sweeper.errors import ExitCode
from sweeper.fingerprint import IMPORTED
from sweeper.standing.beacon import Beacon
from sweeper.standing.catalogue import Catalogue
from tests.commands.conftest import MakeStudy
from tests.fakes import FakeClock

pytestmark = [pytest.mark.study, pytest.mark.compose]


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> Catalogue:
    assert main(["studies", "--json", *words]) == ExitCode.OK
    return Catalogue.model_validate_json(capsys.readouterr().out)


def test_each_study_has_its_state_trials_best_and_origin(
    make_study: MakeStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, ended in (("a", "complete"), ("b", "interrupted"), ("c", ""), ("d", "night over")):
        make_study(name, ended, trials=3 if name == "a" else 1)
    make_study("e", trials=0).store.set_fact("run:gpu1", None)
    make_study("g", "stopped", trials=0)
    make_study("f").store.set_fact("fingerprint", {IMPORTED: "sglang results", "engine": "sglang"})
    found = {entry.study: entry for entry in listed(capsys).studies}
    states = {name: entry.state for name, entry in found.items()}
    assert states == {
        "a": "complete", "b": "interrupted", "c": "interrupted", "d": "night over", "e": "empty", "f": "imported",
        "g": "stopped",
    }  # fmt: skip
    first = found["a"]
    assert (first.trials_done, first.trials_total, first.engine, first.model) == (3, 20, "sglang", "kimi")
    assert first.best is not None
    assert first.best.ratio is not None
    assert first.baseline is not None
    assert first.last_at is not None


@pytest.mark.parametrize(
    ("ended", "kind"),
    [("complete", "no gain over the baseline"), ("interrupted", None), ("night over", None)],
)
def test_only_a_study_that_is_over_claims_a_verdict(
    make_study: MakeStudy, capsys: pytest.CaptureFixture[str], ended: str, kind: str | None
) -> None:
    study = make_study("night", ended, trials=3)
    assert not study.verdict(lambda _: (0.0,)).confirmed
    assert listed(capsys).studies[0].verdict_kind == kind
    assert main(["report", "--json", "study.name=night"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["verdict"]["kind"] == kind


def test_what_fresh_launches_have_confirmed_is_told_of_a_night_that_is_over(
    make_study: MakeStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_study("night", "night over").store
    store.set_fact("verdict", {"kind": "winner", "confirmed": True, "text": "Winner: trial 1."})
    assert listed(capsys).studies[0].verdict_kind == "winner"


def test_the_one_that_runs_says_by_whom(make_study: MakeStudy, capsys: pytest.CaptureFixture[str]) -> None:
    make_study("night", "complete")
    with Beacon(Path("sweeps"), "night", "gpu1", FakeClock(), "output_throughput"):
        (entry,) = listed(capsys).studies
        assert entry.state == "running"
        assert "gpu1 (pid " in entry.by[0]
    assert listed(capsys).studies[0].state == "complete"


def test_studies_of_others_damaged_ones_and_other_files_are_told(
    make_study: MakeStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    make_study("night", "complete")
    optuna.create_study(study_name="theirs", storage="sqlite:///sweeps/optuna.db")
    broken = make_study("broken", trials=0)
    broken.store.set_fact("verdict", "not what we write")
    Path("sweeps/notes.db").write_bytes(b"not a database, but long enough to be taken for one" * 20)
    with closing(sqlite3.connect("sweeps/other.db")) as connection:
        connection.execute("CREATE TABLE cats (name)")
    before = sorted(path.stat().st_size for path in Path("sweeps").glob("o*.db"))
    found = listed(capsys)
    states = {entry.study: entry.state for entry in found.studies}
    assert states == {"night": "complete", "theirs": "foreign", "broken": "damaged"}
    assert [note.partition(":")[0] for note in found.notes] == ["sweeps/notes.db", "sweeps/other.db"]
    assert sorted(path.stat().st_size for path in Path("sweeps").glob("o*.db")) == before


def test_a_study_without_one_of_its_tables_is_told_without_statements(
    make_study: MakeStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    make_study("night", "complete")
    with closing(sqlite3.connect("sweeps/optuna.db")) as connection:
        connection.execute("DROP TABLE trial_values")
    (entry,) = listed(capsys).studies
    assert (entry.state, entry.why) == ("damaged", "no such table: trial_values")


@pytest.mark.parametrize("columns", ["40", "100", "160"])
def test_it_fits_the_screen_and_holds_no_codes(
    make_study: MakeStudy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    make_study("a-night-with-a-long-name", "complete")
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["studies"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "a-night-with-a-long-name" in text
    assert "\x1b" not in text
    assert "\r" not in text
    if columns == "40":
        assert all(line.startswith(("a-night", "  ")) for line in text.splitlines()), (
            "what is folded stays in its column"
        )


def test_every_key_is_documented(make_study: MakeStudy, capsys: pytest.CaptureFixture[str]) -> None:
    make_study()
    assert main(["studies", "--json"]) == ExitCode.OK
    answer = json.loads(capsys.readouterr().out)
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [key for key in (*answer, *answer["studies"][0]) if f"`{key}`" not in page] == []
