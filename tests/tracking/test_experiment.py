"""Two studies of one name on one MLflow: each keeps its own runs."""

from __future__ import annotations

import pytest

from sweeper.spec import TrackingSpec
from sweeper.tracking import SyncReport, Tracker
from sweeper.tracking.view import TAG_STUDY, TAG_STUDY_ID, TAG_TRIAL
from tests.tracking import seen
from tests.tracking.clocks import ManualClock
from tests.tracking.studies import FakeStudy, make_study

pytestmark = [pytest.mark.service, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

OTHER_ID = "0f0f0f0f0f0f"
OTHER_NAME = "night-0f0f0f"


def sync(spec: TrackingSpec, study: FakeStudy) -> SyncReport:
    """What another process would do: nothing is remembered."""
    return Tracker(spec, ManualClock()).sync(study)


def other_study(count: int) -> FakeStudy:
    study = make_study(count)
    study.identity = OTHER_ID
    return study


def test_another_study_of_the_name_gets_an_experiment_of_its_own(sqlite_spec: TrackingSpec) -> None:
    sync(sqlite_spec, make_study(3))
    before = seen.everything(sqlite_spec.uri)
    assert sync(sqlite_spec, other_study(4)) == SyncReport(num_written=4)
    assert sync(sqlite_spec, other_study(4)) == SyncReport()
    assert seen.everything(sqlite_spec.uri) == before
    assert seen.trial_numbers(sqlite_spec.uri, OTHER_NAME) == [0, 1, 2, 3]
    assert {run.data.tags[TAG_STUDY_ID] for run in seen.runs(sqlite_spec.uri, OTHER_NAME)} == {OTHER_ID}


def test_the_page_of_the_other_study_is_its_own(sqlite_spec: TrackingSpec) -> None:
    sync(sqlite_spec, make_study(1))
    tracker = Tracker(sqlite_spec, ManualClock())
    tracker.sync(other_study(1))
    experiment = seen.client(sqlite_spec.uri).get_experiment_by_name(OTHER_NAME)
    assert experiment is not None
    assert f"#/experiments/{experiment.experiment_id}/" in tracker.view_url("http://host")


def test_a_deleted_experiment_of_another_study_is_not_in_the_way(sqlite_spec: TrackingSpec) -> None:
    sync(sqlite_spec, make_study(1))
    mlflow = seen.client(sqlite_spec.uri)
    mlflow.delete_experiment(seen.runs(sqlite_spec.uri)[0].info.experiment_id)
    assert sync(sqlite_spec, other_study(2)) == SyncReport(num_written=2)


def test_runs_from_before_the_mark_count_as_ours_and_are_marked(sqlite_spec: TrackingSpec) -> None:
    mlflow = seen.client(sqlite_spec.uri)
    number = mlflow.create_experiment("night", artifact_location=sqlite_spec.artifact_location)
    run = mlflow.create_run(number, 1772402400000, {TAG_STUDY: "night", TAG_TRIAL: "0"})
    assert sync(sqlite_spec, make_study(1)) == SyncReport(num_written=1)
    [now] = seen.runs(sqlite_spec.uri)
    assert (now.info.run_id, now.data.tags[TAG_STUDY_ID]) == (run.info.run_id, make_study(1).identity)
    assert sync(sqlite_spec, other_study(1)) == SyncReport(num_written=1)
    assert seen.trial_numbers(sqlite_spec.uri, OTHER_NAME) == [0]


def test_a_strangers_run_in_our_experiment_is_left_alone(sqlite_spec: TrackingSpec) -> None:
    sync(sqlite_spec, make_study(1))
    number = seen.runs(sqlite_spec.uri)[0].info.experiment_id
    stranger = {TAG_STUDY: "night", TAG_STUDY_ID: OTHER_ID, TAG_TRIAL: "1"}
    seen.client(sqlite_spec.uri).create_run(number, 1, stranger)
    assert sync(sqlite_spec, make_study(2)) == SyncReport(num_written=1)
    assert seen.trial_numbers(sqlite_spec.uri) == [0, 1, 1]
