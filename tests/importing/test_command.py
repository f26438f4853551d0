"""The command `import`, as typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchers.shell import LocalShell
from sweeper.__main__ import main
from sweeper.errors import ExitCode
from sweeper.spec import TrackingSpec
from sweeper.tracking import Tracker
from tests.importing.night import DATA, bring, csv_file, stored
from tests.tracking import seen
from tests.tracking.clocks import ManualClock

FILE = str(DATA / "six_figures.csv")


def typed(folder: Path, *words: str) -> int:
    return main(["import", *words, f"study.dir={folder}", "tracking=none"])


@pytest.mark.compose
@pytest.mark.study
@pytest.mark.host
def test_what_was_imported_is_said_and_where_to_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(tmp_path, FILE, "study.name=night") == ExitCode.OK
    said = capsys.readouterr().out
    assert (
        "Imported 6 launches: study night has 6 launches of 6 configurations, ranked by output_throughput" in said
    )
    assert "82.3 in its single launch against 90.0 tok/s" in said
    assert f"specsweep report study.name=night study.dir={tmp_path}" in said
    assert typed(tmp_path, FILE, "study.name=night") == ExitCode.OK
    assert "Nothing new, 6 were known" in capsys.readouterr().out
    assert main(["report", "study.name=night", f"study.dir={tmp_path}", "--output", "-"]) == ExitCode.OK
    assert "## Why" in capsys.readouterr().out
    assert main(["run", "study.name=night", f"study.dir={tmp_path}", "tracking=none"]) == ExitCode.MISMATCH
    assert "was imported (6 launches from six_figures.csv)" in capsys.readouterr().err


@pytest.mark.compose
def test_every_mistake_in_the_options_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--format", "xls", "--engine", "tgi", "--columns", "throughput", "--where", "=1", "--set", "x")
    assert typed(tmp_path, FILE, "study.name=a", *words) == ExitCode.USAGE
    said = capsys.readouterr().err
    for line in ("--format: 'xls'", "--engine: 'tgi'", "--columns: 'throughput'", "--where: '=1'", "--set: 'x'"):
        assert line in said
    assert typed(tmp_path) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "FILE: name at least one" in said
    assert "study.name: give the imported study a name" in said


@pytest.mark.compose
def test_mistakes_in_files_settings_and_options_are_told_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / name) for name in ("none.csv", "nor.jsonl")]
    assert typed(tmp_path, *files, "--engine", "tgi", "study.folder=x") == ExitCode.USAGE
    said = capsys.readouterr().err
    for line in ("none.csv: cannot be read", "nor.jsonl: cannot be read", "study.name: give", "--engine: 'tgi'"):
        assert line in said
    assert "study.folder: unknown name" in said


@pytest.mark.compose
@pytest.mark.study
@pytest.mark.host
def test_many_columns_and_flags_can_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = csv_file(tmp_path, "k,speed,acc,NCCL_PROTO", "0,100,,LL", "2,120,2.1,LL", "2,110,2.1,Simple")
    options = ("--columns", "throughput=speed,accept_length=acc", "--keep", "NCCL_PROTO")
    assert typed(tmp_path, str(path), "study.name=a", *options, "--set", "speculative-algorithm=EAGLE3") == 0
    assert "3 configurations" in capsys.readouterr().out
    last = stored(tmp_path, "a").trials()[2]
    assert last.canonical.env == {"NCCL_PROTO": "Simple"}
    assert last.canonical.flags["speculative_algorithm"] == "EAGLE3"


@pytest.mark.compose
@pytest.mark.host
def test_a_study_that_is_being_measured_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with LocalShell("sweep").hold(f"{tmp_path}/night.lock"):
        assert typed(tmp_path, FILE, "study.name=night") == ExitCode.HOST_BUSY
    assert not (tmp_path / "optuna.db").exists()


@pytest.mark.service
@pytest.mark.study
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_mlflow_shows_an_imported_study_and_keeps_its_runs_when_more_is_added(tmp_path: Path) -> None:
    head = "num_steps,throughput,accept_length"
    first = bring(tmp_path, csv_file(tmp_path, head, "2,120,2.1"), name="night").study
    assert first is not None
    spec = TrackingSpec(uri=f"sqlite:///{tmp_path}/m.db", artifact_location=str(tmp_path / "files"), sync_s=300.0)
    assert Tracker(spec, ManualClock()).sync(first).num_written == 1
    before = {run.info.run_id for run in seen.runs(spec.uri)}
    more = bring(tmp_path, csv_file(tmp_path, head, "0,100,", "2,121,2.2", name="more.csv"), name="night").study
    assert more is not None
    assert not Tracker(spec, ManualClock()).sync(more).num_behind
    runs = seen.runs(spec.uri)
    assert before <= {run.info.run_id for run in runs}
    assert len(runs) == 2
