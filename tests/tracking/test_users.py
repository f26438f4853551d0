"""What users do in MLflow's page, and a study that loses trials meanwhile: MLflow ends equal to the study."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from sweeper.spec import TrackingSpec
from sweeper.tracking import SyncReport, Tracker
from sweeper.tracking.same_trial import TAG_RETIRED, TAG_SYNCED
from sweeper.tracking.shelf import Shelf
from sweeper.tracking.view import TAG_LOST, TAG_TRIAL, owner_tags
from tests.tracking import seen
from tests.tracking.clocks import ManualClock
from tests.tracking.studies import FakeStudy, config, launch, make_study, spec_config, trial

pytestmark = [pytest.mark.service, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

OTHER = config({"spec_type": "ngram-simple", "spec_ngram_size_n": 9})


def sync(spec: TrackingSpec, study: FakeStudy) -> SyncReport:
    """What another process would do: nothing is remembered."""
    return Tracker(spec, ManualClock()).sync(study)


def run_of(spec: TrackingSpec, number: int, view: int = seen.ACTIVE) -> str:
    (run,) = [run for run in seen.runs(spec.uri, view=view) if run.data.tags.get(TAG_TRIAL) == str(number)]
    return str(run.info.run_id)


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize("settings", [OTHER, spec_config(2)], ids=["another", "measured again"])
def test_a_trial_with_the_number_of_one_whose_run_was_deleted_is_seen(
    sqlite_spec: TrackingSpec, same_process: bool, settings: object
) -> None:
    study, tracker = make_study(3), Tracker(sqlite_spec, ManualClock())
    tracker.sync(study)
    deleted = run_of(sqlite_spec, 2)
    seen.client(sqlite_spec.uri).delete_run(deleted)
    assert sync(sqlite_spec, study) == SyncReport(), "it stays deleted while the study has that very trial"
    later = launch(2, OTHER).started_at.replace(hour=23)
    chosen = OTHER if settings is OTHER else spec_config(2)
    study.add(trial(2, chosen, launches=(launch(2, chosen, started_at=later),)))
    report = tracker.sync(study) if same_process else sync(sqlite_spec, study)
    assert report == SyncReport(num_written=1)
    assert seen.trial_numbers(sqlite_spec.uri) == [0, 1, 2]
    assert run_of(sqlite_spec, 2) != deleted
    assert sync(sqlite_spec, study) == SyncReport()
    seen.client(sqlite_spec.uri).delete_run(run_of(sqlite_spec, 2))
    assert sync(sqlite_spec, study) == SyncReport(), "this one's run was deleted, too"
    assert seen.trial_numbers(sqlite_spec.uri) == [0, 1]


def test_the_run_of_a_lost_trial_that_a_user_restores_is_marked_and_the_new_one_stays(
    sqlite_spec: TrackingSpec,
) -> None:
    study = make_study(3)
    sync(sqlite_spec, study)
    mlflow, former = seen.client(sqlite_spec.uri), run_of(sqlite_spec, 2)
    mlflow.delete_run(former)
    study.add(trial(2, OTHER))
    sync(sqlite_spec, study)
    now = run_of(sqlite_spec, 2)
    mlflow.restore_run(former)
    sync(sqlite_spec, study)
    assert run_of(sqlite_spec, 2) == now
    assert mlflow.get_run(former).data.tags[TAG_LOST] == "2"


def test_a_run_that_a_user_restores_is_brought_up_to_date(sqlite_spec: TrackingSpec) -> None:
    study, settings = make_study(3), spec_config(1)
    sync(sqlite_spec, study)
    mlflow, run = seen.client(sqlite_spec.uri), run_of(sqlite_spec, 1)
    mlflow.delete_run(run)
    study.add(trial(1, settings, launches=(launch(1, settings), launch(1, settings, 1))))
    sync(sqlite_spec, study)
    mlflow.restore_run(run)
    assert sync(sqlite_spec, study) == SyncReport(num_written=1)
    assert run_of(sqlite_spec, 1) == run
    assert mlflow.get_run(run).data.metrics["output_throughput"] == pytest.approx(84.5)


def test_what_users_write_is_left_to_them(sqlite_spec: TrackingSpec) -> None:
    study, settings = make_study(3), spec_config(1)
    sync(sqlite_spec, study)
    mlflow, run = seen.client(sqlite_spec.uri), run_of(sqlite_spec, 1)
    mlflow.update_run(run, name="my favourite")
    mlflow.set_tag(run, "mine", "look here")
    study.add(trial(1, settings, launches=(launch(1, settings), launch(1, settings, 1))))
    assert sync(sqlite_spec, study).num_written == 1
    found = mlflow.get_run(run)
    assert (found.info.run_name, found.data.tags["mine"]) == ("my favourite", "look here")


def test_an_experiment_that_a_user_renamed_is_gone_on_with(sqlite_spec: TrackingSpec) -> None:
    study = make_study(2)
    sync(sqlite_spec, study)
    mlflow = seen.client(sqlite_spec.uri)
    number = seen.runs(sqlite_spec.uri)[0].info.experiment_id
    mlflow.rename_experiment(number, "last tuesday")
    assert sync(sqlite_spec, make_study(3)) == SyncReport(num_written=1)
    assert mlflow.get_experiment_by_name("night") is None
    assert seen.trial_numbers(sqlite_spec.uri, "last tuesday") == [0, 1, 2]


class Users:
    """Somebody who does this and that in MLflow, while the study goes on, or loses trials."""

    def __init__(self, spec: TrackingSpec, chance: random.Random) -> None:
        self.spec, self.chance, self.study = spec, chance, make_study(4)
        self.num_made = 0

    def do_something(self) -> None:
        self.chance.choice(
            [self.delete, self.restore, self.rename, self.measure, self.measure, self.lose, self.sync]
        )()

    def delete(self) -> None:
        if active := seen.runs(self.spec.uri):
            seen.client(self.spec.uri).delete_run(self.chance.choice(active).info.run_id)

    def restore(self) -> None:
        if deleted := seen.runs(self.spec.uri, view=seen.DELETED):
            seen.client(self.spec.uri).restore_run(self.chance.choice(deleted).info.run_id)

    def rename(self) -> None:
        if active := seen.runs(self.spec.uri):
            seen.client(self.spec.uri).update_run(self.chance.choice(active).info.run_id, name="renamed")

    def measure(self) -> None:
        """A new trial, with settings that none had before."""
        self.num_made += 1
        number = len(self.study.records)
        self.study.add(
            trial(number, config({"spec_type": "ngram-simple", "spec_ngram_size_m": 100 + self.num_made}))
        )

    def lose(self) -> None:
        self.study.records = self.study.records[: -self.chance.randint(1, 2)] or self.study.records

    def sync(self) -> None:
        sync(self.spec, self.study)


@pytest.mark.parametrize("seed", range(6))
def test_after_all_that_mlflow_is_equal_to_the_study(sqlite_spec: TrackingSpec, seed: int) -> None:
    users = Users(sqlite_spec, random.Random(seed))
    users.sync()
    for _ in range(12):
        users.do_something()
    tracker = Tracker(sqlite_spec, ManualClock())
    for _ in range(2):  # what the study has lost is told at the second look
        assert tracker.sync(users.study).error == ""
    shelf = Shelf(owner_tags("night", users.study.identity), users.study.objective)
    shelf.put(users.study.trials())
    views = {str(view.trial.number): view for view in shelf.unsure({})}
    active = [run for run in seen.runs(sqlite_spec.uri) if TAG_TRIAL in run.data.tags]
    gone = [run for run in seen.runs(sqlite_spec.uri, view=seen.DELETED) if TAG_RETIRED not in run.data.tags]
    counts = Counter(run.data.tags[TAG_TRIAL] for run in active)
    assert counts.keys() <= views.keys()
    assert set(counts.values()) <= {1}
    for number, view in views.items():
        shown = [run.data.tags[TAG_SYNCED] for run in active if run.data.tags[TAG_TRIAL] == number]
        theirs = [run for run in gone if run.data.tags.get(TAG_TRIAL) == number]
        was_deleted = any(not view.is_of_another(run.data.tags) for run in theirs)
        assert shown == [view.digest] or (was_deleted and not shown), number
