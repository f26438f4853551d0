"""What users and accidents did to MLflow, and what the next sync makes of it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from sweeper.spec import TrackingSpec
from sweeper.tracking import SyncReport, Tracker
from sweeper.tracking.same_trial import TAG_RETIRED
from sweeper.tracking.tracker import RETRY_AFTER_S
from sweeper.tracking.view import TAG_FAILURE, TAG_LOST, TAG_STATE, TAG_STUDY, TAG_TRIAL
from tests.tracking import seen
from tests.tracking.clocks import ManualClock
from tests.tracking.conftest import spec_for
from tests.tracking.studies import START, FakeStudy, config, launch, make_study, spec_config, trial

pytestmark = [pytest.mark.service, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def sync(spec: TrackingSpec, study: FakeStudy) -> SyncReport:
    """What another process would do: nothing is remembered."""
    return Tracker(spec, ManualClock()).sync(study)


def test_a_run_that_a_user_deleted_stays_deleted(sqlite_spec: TrackingSpec) -> None:
    study = make_study(3)
    sync(sqlite_spec, study)
    seen.client(sqlite_spec.uri).delete_run(seen.runs(sqlite_spec.uri)[1].info.run_id)
    settings = spec_config(1)
    assert sync(sqlite_spec, study) == SyncReport()
    study.add(trial(1, settings, launches=(launch(1, settings), launch(1, settings, 1))))
    assert sync(sqlite_spec, study) == SyncReport()
    assert seen.trial_numbers(sqlite_spec.uri) == [0, 2]


def test_a_run_deleted_while_the_sweep_goes_on_stays_deleted(sqlite_spec: TrackingSpec) -> None:
    study = make_study(2)
    tracker = Tracker(sqlite_spec, ManualClock())
    tracker.sync(study)
    seen.client(sqlite_spec.uri).delete_run(seen.runs(sqlite_spec.uri)[1].info.run_id)
    settings = spec_config(1)
    study.add(trial(1, settings, launches=(launch(1, settings), launch(1, settings, 1))))
    report = tracker.sync(study)
    assert (report.num_behind, report.error) == (0, "")
    assert seen.trial_numbers(sqlite_spec.uri) == [0]


def test_of_two_runs_of_one_trial_the_complete_one_is_kept(sqlite_spec: TrackingSpec) -> None:
    study = make_study(2)
    sync(sqlite_spec, study)
    mlflow = seen.client(sqlite_spec.uri)
    kept = seen.runs(sqlite_spec.uri)[1].info
    mlflow.create_run(kept.experiment_id, 1, {TAG_STUDY: "night", TAG_TRIAL: "1"})
    sync(sqlite_spec, study)
    assert [run.info.run_id for run in seen.runs(sqlite_spec.uri)][1:] == [kept.run_id]
    retired = seen.runs(sqlite_spec.uri, view=seen.DELETED)
    assert [run.data.tags[TAG_RETIRED] for run in retired] == ["duplicate"]
    assert sync(sqlite_spec, study) == SyncReport()


def test_a_score_that_turned_into_a_failure_gets_a_run_without_it(sqlite_spec: TrackingSpec) -> None:
    study = make_study(4)
    study.add(trial(3, spec_config(3)))
    sync(sqlite_spec, study)
    sync(sqlite_spec, make_study(4))
    runs = seen.runs(sqlite_spec.uri)
    assert [run.data.tags[TAG_TRIAL] for run in runs] == ["0", "1", "2", "3"]
    assert "output_throughput" not in runs[3].data.metrics


def test_a_failure_that_turned_into_a_score_loses_its_reason(sqlite_spec: TrackingSpec) -> None:
    sync(sqlite_spec, make_study(4))
    study = make_study(4)
    study.add(trial(3, spec_config(3)))
    sync(sqlite_spec, study)
    run = seen.runs(sqlite_spec.uri)[3]
    assert run.info.status == "FINISHED"
    assert TAG_FAILURE not in run.data.tags
    assert "ran out of memory" not in run.data.tags["mlflow.note.content"]


def test_one_refused_trial_does_not_hold_up_the_others(sqlite_spec: TrackingSpec) -> None:
    study = make_study(3)
    long_ago = START.replace(year=1960)
    study.add(
        trial(1, spec_config(1), launches=(launch(1, spec_config(1), started_at=long_ago, ended_at=long_ago),))
    )
    tracker = Tracker(sqlite_spec, ManualClock())
    report = tracker.sync(study)
    assert (report.num_written, report.num_behind) == (2, 1)
    assert report.error.startswith("trial 1 was refused: Invalid value -310356000000 for parameter")
    assert tracker.sync(study) == SyncReport(num_behind=1)


def test_a_deleted_experiment_is_one_clear_line(sqlite_spec: TrackingSpec) -> None:
    study = make_study(2)
    sync(sqlite_spec, study)
    mlflow = seen.client(sqlite_spec.uri)
    experiment = mlflow.get_experiment_by_name("night")
    assert experiment is not None
    mlflow.delete_experiment(experiment.experiment_id)
    report = sync(sqlite_spec, study)
    assert report.num_behind == 2
    assert report.error.endswith(
        "the experiment 'night' was deleted; restore it there or name the study differently"
    )
    mlflow.restore_experiment(experiment.experiment_id)
    assert sync(sqlite_spec, study) == SyncReport()
    assert seen.trial_numbers(sqlite_spec.uri) == [0, 1]


def test_a_file_that_is_no_database_is_reported_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    file.write_text("not a database, and longer than one hundred bytes " * 4)
    clock = ManualClock()
    tracker = Tracker(spec_for(f"sqlite:///{file}", tmp_path), clock)
    report = tracker.sync(make_study(2))
    assert report == SyncReport(num_behind=2, error=f"sqlite:///{file}: file is not a database")
    file.unlink()
    assert tracker.sync(make_study(2)) == report
    clock.now_s += RETRY_AFTER_S
    assert tracker.sync(make_study(2)) == SyncReport(num_written=2)


def test_a_database_of_optuna_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE trials (trial_id INTEGER)")
    connection.close()
    before = file.read_bytes()
    assert "needs a database of its own" in sync(spec_for(f"sqlite:///{file}", tmp_path), make_study(1)).error
    assert file.read_bytes() == before


@pytest.mark.parametrize("folder", ["files", "my files"])
def test_files_that_were_deleted_are_sent_again(sqlite_spec: TrackingSpec, tmp_path: Path, folder: str) -> None:
    spec = spec_for(sqlite_spec.uri, tmp_path).model_copy(update={"artifact_location": str(tmp_path / folder)})
    study = make_study(3)
    tracker = Tracker(spec, ManualClock())
    tracker.sync(study)
    before = seen.everything(spec.uri)
    shutil.rmtree(tmp_path / folder)
    assert sync(spec, study) == SyncReport(num_written=3)
    assert seen.everything(spec.uri) == before
    assert sync(spec, study) == SyncReport()


def test_deleted_files_of_a_trial_that_changes_are_sent_again_by_the_same_process(
    sqlite_spec: TrackingSpec, tmp_path: Path
) -> None:
    study = make_study(2)
    tracker = Tracker(sqlite_spec, ManualClock())
    tracker.sync(study)
    shutil.rmtree(tmp_path / "files")
    study.add(trial(0, config({}), launches=(launch(0, config({})), launch(0, config({}), 1))))
    assert tracker.sync(study).num_written == 2
    assert all("command.txt" in seen.files(sqlite_spec.uri, run) for run in seen.runs(sqlite_spec.uri))


def test_files_of_a_study_that_was_moved_are_not_written_to_the_old_place(
    sqlite_spec: TrackingSpec, tmp_path: Path
) -> None:
    sync(sqlite_spec, make_study(2))
    (tmp_path / "files").rename(tmp_path / "new")
    moved = sqlite_spec.model_copy(update={"artifact_location": str(tmp_path / "new")})
    assert sync(moved, make_study(2)) == SyncReport()
    assert not (tmp_path / "files").exists()


def test_a_place_where_no_database_can_be_made_is_reported(tmp_path: Path) -> None:
    report = sync(spec_for("sqlite:////proc/mlflow.db", tmp_path), make_study(1))
    assert report == SyncReport(num_behind=1, error="sqlite:////proc/mlflow.db: unable to open database file")


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    report = sync(spec_for(f"sqlite:///{tmp_path}/file/mlflow.db", tmp_path), make_study(1))
    assert report.error.endswith(f"File exists: '{tmp_path}/file'")


def lost(spec: TrackingSpec) -> list[tuple[str, str, str, str]]:
    """Of each run that belongs to no trial any more: what it was, its name, its status, its throughput."""
    runs = [run for run in seen.all_runs(spec.uri) if TAG_LOST in run.data.tags]
    assert all(run.data.tags[TAG_STATE] == "lost" and TAG_TRIAL not in run.data.tags for run in runs)
    told = [(r.data.tags[TAG_LOST], r.info.run_name, r.info.status, r.data.metrics) for r in runs]
    return sorted((number, name, status, f"{m['output_throughput']:g}") for number, name, status, m in told)


def shown(spec: TrackingSpec) -> list[tuple[int, dict[str, str]]]:
    """Of each run that is a trial's: which, and its parameters."""
    runs = [run for run in seen.all_runs(spec.uri) if TAG_TRIAL in run.data.tags]
    return sorted((int(run.data.tags[TAG_TRIAL]), run.data.params) for run in runs)


@pytest.mark.parametrize("same_process", [True, False])
def test_runs_of_trials_that_the_study_has_lost_stay_and_say_so(
    sqlite_spec: TrackingSpec, same_process: bool
) -> None:
    study = make_study(6)
    tracker = Tracker(sqlite_spec, ManualClock())
    tracker.sync(study)
    if not same_process:
        tracker = Tracker(sqlite_spec, ManualClock())
        assert tracker.sync(study.first(3)) == SyncReport()
        assert lost(sqlite_spec) == [], "a run that was found after the study was read may be of a newer trial"
    assert tracker.sync(study.first(3)) == SyncReport()
    assert [number for number, _ in shown(sqlite_spec)] == [0, 1, 2]
    numbers = [run.data.tags[TAG_LOST] for run in seen.all_runs(sqlite_spec.uri) if TAG_LOST in run.data.tags]
    assert sorted(numbers) == ["3", "4", "5"]
    assert tracker.sync(study.first(3)) == SyncReport()
    assert tracker.sync(study).num_written == 3, "measured again, they have runs again"
    assert [number for number, _ in shown(sqlite_spec)] == [0, 1, 2, 3, 4, 5]


def test_a_number_that_is_given_again_gets_a_run_of_its_own(sqlite_spec: TrackingSpec) -> None:
    study = make_study(3)
    sync(sqlite_spec, study)
    other = config({"spec_type": "ngram-simple"})
    study.add(trial(2, other))
    assert sync(sqlite_spec, study).num_written == 1
    assert dict(shown(sqlite_spec))[2] == {"ctx_size": "4096", "threads": "2", "spec_type": "ngram-simple"}
    ((number, name, status, value),) = lost(sqlite_spec)
    assert (number, status, value) == ("2", "KILLED", "88")
    assert name.startswith("lost: trial 2 · ")
    assert sync(sqlite_spec, study) == SyncReport()


def test_a_launch_that_was_lost_is_not_in_the_history_of_the_one_that_was_made_again(
    sqlite_spec: TrackingSpec,
) -> None:
    study, settings = make_study(3), spec_config(2)
    sync(sqlite_spec, study)
    later = launch(2, settings).started_at.replace(hour=23)
    again = launch(2, settings, started_at=later, repeat_throughputs=(70.0, 71.0, 72.0))
    study.add(trial(2, settings, launches=(again,)))
    sync(sqlite_spec, study)
    mlflow = seen.client(sqlite_spec.uri)
    (run,) = [run for run in seen.all_runs(sqlite_spec.uri) if run.data.tags.get(TAG_TRIAL) == "2"]
    points = seen.history(mlflow, run, "repeat_output_throughput")
    assert [value for _, _, value in points] == [70.0, 71.0, 72.0]
    assert [number for number, *_ in lost(sqlite_spec)] == ["2"]


def test_a_further_launch_leaves_the_run_what_it_is(sqlite_spec: TrackingSpec) -> None:
    study, settings = make_study(3), spec_config(2)
    sync(sqlite_spec, study)
    before = [run.info.run_id for run in seen.runs(sqlite_spec.uri)]
    study.add(trial(2, settings, launches=(launch(2, settings), launch(2, settings, 1))))
    sync(sqlite_spec, study)
    assert [run.info.run_id for run in seen.runs(sqlite_spec.uri)] == before


def test_a_marking_that_was_cut_short_is_finished_by_the_next_sync(sqlite_spec: TrackingSpec) -> None:
    study = make_study(3)
    sync(sqlite_spec, study)
    run = seen.runs(sqlite_spec.uri)[2].info
    mlflow = seen.client(sqlite_spec.uri)
    for name, value in ((TAG_RETIRED, "lost"), (TAG_LOST, "2"), (TAG_STATE, "lost")):
        mlflow.set_tag(run.run_id, name, value)
    assert sync(sqlite_spec, study).num_written == 1
    assert [number for number, *_ in lost(sqlite_spec)] == ["2"]
    assert [number for number, _ in shown(sqlite_spec)] == [0, 1, 2]
