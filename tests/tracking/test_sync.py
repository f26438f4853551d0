"""Syncing to a plain SQLite file."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.records import TrialState
from sweeper.spec import TrackingSpec
from sweeper.tracking import SyncReport, Tracker
from sweeper.tracking.page import TAG_VERDICT, TAG_VIEW
from sweeper.tracking.view import TAG_FAILURE, TAG_STATE
from tests.tracking import seen
from tests.tracking.clocks import CountingClock, ManualClock
from tests.tracking.conftest import spec_for
from tests.tracking.studies import FakeStudy, config, launch, make_study, spec_config, trial

pytestmark = [pytest.mark.service, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def sync(spec: TrackingSpec, study: FakeStudy) -> SyncReport:
    """What another process would do: nothing is remembered."""
    return Tracker(spec, ManualClock()).sync(study)


def test_every_finished_trial_is_one_run_and_a_running_one_is_none(sqlite_spec: TrackingSpec) -> None:
    study = make_study(5)
    study.add(trial(5, spec_config(5), TrialState.RUNNING))
    assert sync(sqlite_spec, study) == SyncReport(num_written=5, num_behind=0)
    assert seen.trial_numbers(sqlite_spec.uri) == [0, 1, 2, 3, 4]


def test_a_run_shows_the_trial(sqlite_spec: TrackingSpec) -> None:
    sync(sqlite_spec, make_study(3))
    run = seen.content(sqlite_spec.uri, seen.runs(sqlite_spec.uri)[2])
    assert (run["name"], run["status"]) == ("trial 2 · ngram-simple n4 m8", "FINISHED")
    assert run["times"] == (1772403000000, 1772403240000)
    assert run["params"] == {
        "ctx_size": "4096",
        "threads": "2",
        "spec_type": "ngram-simple",
        "spec_ngram_size_n": "4",
        "spec_ngram_size_m": "8",
    }
    assert run["metrics"]["output_throughput"] == [(0, 1772403240000, 88.0)]
    assert run["metrics"]["accept_len"] == run["metrics"]["accept_length"] == [(0, 1772403240000, 1.7)]
    assert run["metrics"]["speedup"] == [(0, 1772403240000, 1.1)]
    assert [point[::2] for point in run["metrics"]["repeat_output_throughput"]] == [
        (1, 87.0),
        (2, 88.0),
        (3, 89.0),
    ]
    assert set(run["files"]) == {"command.txt", "record.json", "requests.json", "launch-0-server.log"}


def test_an_infeasible_trial_failed_says_why_and_cannot_be_ranked(sqlite_spec: TrackingSpec) -> None:
    sync(sqlite_spec, make_study(4))
    run = seen.runs(sqlite_spec.uri)[3]
    assert run.info.status == "FAILED"
    assert (run.data.tags[TAG_STATE], run.data.tags[TAG_FAILURE]) == ("infeasible", "out_of_memory")
    assert "alloc failed: 9 GiB" in run.data.tags["mlflow.note.content"]
    assert set(run.data.metrics) == {"start_s", "stop_s"}


def test_a_second_sync_changes_nothing(sqlite_spec: TrackingSpec) -> None:
    study = make_study(4)
    sync(sqlite_spec, study)
    before = seen.everything(sqlite_spec.uri)
    assert sync(sqlite_spec, study) == SyncReport(num_written=0, num_behind=0)
    assert seen.everything(sqlite_spec.uri) == before


def test_unchanged_trials_cost_no_call_and_no_read(sqlite_spec: TrackingSpec) -> None:
    study, clock = make_study(4), CountingClock()
    tracker = Tracker(sqlite_spec, clock)
    tracker.sync(study)
    study.reads.clear()
    clock.readings = 0
    tracker.sync(study)
    assert clock.readings == 2  # the back-off and the budget; a call to MLflow would read it too
    assert study.reads == []


def test_a_new_process_learns_what_is_there_from_two_calls(sqlite_spec: TrackingSpec) -> None:
    study, clock = make_study(4), CountingClock()
    sync(sqlite_spec, study)
    Tracker(sqlite_spec, clock).sync(study)
    assert clock.readings == 3 + 2  # the back-off, the budget, the time for learning; and a call reads it


def test_a_confirming_launch_updates_the_run(sqlite_spec: TrackingSpec) -> None:
    study = make_study(3)
    tracker = Tracker(sqlite_spec, ManualClock())
    tracker.sync(study)
    settings = spec_config(2)
    study.add(trial(2, settings, launches=(launch(2, settings), launch(2, settings, 1))))
    assert tracker.sync(study).num_written == 1
    runs = seen.runs(sqlite_spec.uri)
    assert len(runs) == 3
    assert runs[2].data.metrics["output_throughput"] == 88.5
    assert runs[2].data.tags["specsweep.purpose"] == "search, confirm"
    assert "launch-1-server.log" in seen.files(sqlite_spec.uri, runs[2])
    assert len(seen.content(sqlite_spec.uri, runs[2])["metrics"]["repeat_output_throughput"]) == 6


def test_a_new_baseline_launch_moves_every_speedup_but_uploads_no_file(sqlite_spec: TrackingSpec) -> None:
    study = make_study(3)
    tracker = Tracker(sqlite_spec, ManualClock())
    tracker.sync(study)
    study.add(trial(0, config({}), launches=(launch(0, config({})), launch(0, config({}), 1))))
    study.reads.clear()
    assert tracker.sync(study).num_written == 3
    assert [round(run.data.metrics["speedup"], 2) for run in seen.runs(sqlite_spec.uri)] == [1.0, 1.04, 1.09]
    assert {number for number, _ in study.reads} == {0}


def test_a_further_launch_sends_its_own_log_and_not_the_others_again(sqlite_spec: TrackingSpec) -> None:
    study = make_study(2)
    tracker = Tracker(sqlite_spec, ManualClock())
    tracker.sync(study)
    study.add(trial(0, config({}), launches=(launch(0, config({})), launch(0, config({}), 1))))
    study.reads.clear()
    tracker.sync(study)
    assert [name for _, name in study.reads if name.endswith(".log")] == ["launch-1-server.log"]
    files = seen.files(sqlite_spec.uri, seen.runs(sqlite_spec.uri)[0])
    assert {"launch-0-server.log", "launch-1-server.log"} <= files.keys()


def test_a_trial_without_a_launch_and_with_a_lost_artifact_is_shown_all_the_same(
    sqlite_spec: TrackingSpec,
) -> None:
    study = make_study(2)
    study.add(trial(2, spec_config(2), TrialState.FAILED, launches=()))
    study.artifacts.clear()
    assert sync(sqlite_spec, study) == SyncReport(num_written=3)
    runs = seen.runs(sqlite_spec.uri)
    assert runs[2].info.status == "FAILED"
    assert set(seen.files(sqlite_spec.uri, runs[1])) == {"command.txt", "record.json"}


def test_when_time_runs_out_the_rest_is_done_next_time(sqlite_spec: TrackingSpec) -> None:
    study = make_study(4)
    sync(sqlite_spec, study.first(0))
    tracker = Tracker(
        spec_for(sqlite_spec.uri, Path(sqlite_spec.artifact_location).parent, 10.0), ManualClock(0.7)
    )
    reports = [tracker.sync(study) for _ in range(8)]
    assert {report.error for report in reports} == {""}
    behind = [report.num_behind for report in reports]
    assert behind[0] > 0
    assert behind == sorted(behind, reverse=True)
    assert behind[-1] == 0
    reference = spec_for(sqlite_spec.uri.replace("mlflow.db", "reference.db"), Path(sqlite_spec.artifact_location))
    sync(reference, study)
    assert seen.everything(sqlite_spec.uri) == seen.everything(reference.uri)


def test_the_page_shows_the_verdict_and_opens_best_first(sqlite_spec: TrackingSpec) -> None:
    study = make_study(3)
    tracker = Tracker(sqlite_spec, ManualClock())
    assert tracker.view_url("http://host/") == "http://host/"
    tracker.sync(study)
    study.verdict = "winner: trial 2"
    tracker.sync(study)
    experiment = seen.client(sqlite_spec.uri).get_experiment_by_name("night")
    assert experiment is not None
    assert experiment.tags[TAG_VERDICT] == "winner: trial 2"
    assert "winner: trial 2" in experiment.tags["mlflow.note.content"]
    assert TAG_VIEW in experiment.tags
    assert f"/#/experiments/{experiment.experiment_id}/runs" in tracker.view_url("http://host")


def test_a_description_that_a_user_wrote_is_kept_until_ours_changes(sqlite_spec: TrackingSpec) -> None:
    study = make_study(3)
    sync(sqlite_spec, study)
    mlflow = seen.client(sqlite_spec.uri)
    experiment = mlflow.get_experiment_by_name("night")
    assert experiment is not None
    mlflow.set_experiment_tag(experiment.experiment_id, "mlflow.note.content", "my own words")
    sync(sqlite_spec, study)
    assert mlflow.get_experiment(experiment.experiment_id).tags["mlflow.note.content"] == "my own words"


def test_an_empty_uri_is_off() -> None:
    spec = TrackingSpec(uri="", artifact_location="", sync_s=1.0)
    assert Tracker(spec, ManualClock()).sync(make_study(2)) == SyncReport(is_off=True)
