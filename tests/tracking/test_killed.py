"""A sync that is killed anywhere is completed by the next one, and nothing is there twice."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from launchers.clock import Clock
from sweeper.spec import TrackingSpec
from sweeper.tracking import SyncReport, Tracker
from tests.tracking import seen
from tests.tracking.clocks import CountingClock, DeadlyClock, ManualClock
from tests.tracking.conftest import spec_for
from tests.tracking.studies import FakeStudy, config, launch, make_study, spec_config, trial

pytestmark = [pytest.mark.service, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

NUM_KILLS = 10


def sync_in_a_child(spec: TrackingSpec, study: FakeStudy, clock: Clock, alarm_s: float = 0.0) -> bool:
    """Sync in a forked process, which the kernel ends after `alarm_s` seconds; whether it was killed."""
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, alarm_s)
            Tracker(spec, clock).sync(study)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def num_readings(spec: TrackingSpec, study: FakeStudy) -> int:
    clock = CountingClock()
    assert Tracker(spec, clock).sync(study).num_behind == 0
    return clock.readings


def reference_of(spec: TrackingSpec, folder: Path) -> TrackingSpec:
    """Another place, for the same study undisturbed."""
    folder.mkdir()
    return spec_for(f"sqlite:///{folder}/mlflow.db", folder)


def test_killed_before_any_call_it_is_completed_by_the_next(sqlite_spec: TrackingSpec, tmp_path: Path) -> None:
    study = make_study(5)
    study.verdict = "no gain over the baseline"
    reference = reference_of(sqlite_spec, tmp_path / "reference")
    last = num_readings(reference, study)
    rng = random.Random(7)
    kills = [sync_in_a_child(sqlite_spec, study, DeadlyClock(rng.randint(3, last))) for _ in range(NUM_KILLS)]
    assert any(kills)
    assert Tracker(sqlite_spec, ManualClock()).sync(study).num_behind == 0
    assert seen.trial_numbers(sqlite_spec.uri) == [0, 1, 2, 3, 4]
    assert seen.everything(sqlite_spec.uri) == seen.everything(reference.uri)


def test_killed_at_each_call_of_one_trial_it_leaves_one_run(sqlite_spec: TrackingSpec, tmp_path: Path) -> None:
    study = make_study(1)
    reference = reference_of(sqlite_spec, tmp_path / "reference")
    for last in range(3, num_readings(reference, study) + 1):
        study.name = f"night-{last}"
        assert sync_in_a_child(sqlite_spec, study, DeadlyClock(last)), last
        assert Tracker(sqlite_spec, ManualClock()).sync(study).error == ""
        [run] = seen.everything(sqlite_spec.uri, study.name)
        [undisturbed] = seen.everything(reference.uri, "night")
        run["tags"]["specsweep.study"] = "night"
        run["tags"]["specsweep.synced"] = undisturbed["tags"]["specsweep.synced"]
        assert run == undisturbed


def test_killed_in_the_midst_of_calls_it_is_completed_by_the_next(
    sqlite_spec: TrackingSpec, tmp_path: Path
) -> None:
    study = make_study(5)
    reference = reference_of(sqlite_spec, tmp_path / "reference")
    rng = random.Random(11)
    kills = [sync_in_a_child(sqlite_spec, study, ManualClock(), rng.uniform(0.02, 0.4)) for _ in range(NUM_KILLS)]
    assert any(kills)
    assert Tracker(sqlite_spec, ManualClock()).sync(study).num_behind == 0
    Tracker(reference, ManualClock()).sync(study)
    assert seen.everything(sqlite_spec.uri) == seen.everything(reference.uri)


def test_killed_while_the_database_is_made_it_is_made_again(tmp_path: Path) -> None:
    spec = spec_for(f"sqlite:///{tmp_path}/mlflow.db", tmp_path)
    study = make_study(2)
    rng = random.Random(13)
    kills = [sync_in_a_child(spec, study, ManualClock(), rng.uniform(0.05, 0.4)) for _ in range(4)]
    assert any(kills)
    assert Tracker(spec, ManualClock()).sync(study) == SyncReport(num_written=2)
    assert seen.trial_numbers(spec.uri) == [0, 1]
    assert not list(tmp_path.glob("mlflow.db.new*"))


def test_killed_during_an_update_it_is_completed_by_the_next(sqlite_spec: TrackingSpec) -> None:
    study = make_study(2)
    Tracker(sqlite_spec, ManualClock()).sync(study)
    for number, settings in ((0, config({})), (1, spec_config(1))):
        study.add(trial(number, settings, launches=(launch(number, settings), launch(number, settings, 1))))
    for last in range(3, 14):
        sync_in_a_child(sqlite_spec, study, DeadlyClock(last))
    assert Tracker(sqlite_spec, ManualClock()).sync(study).num_behind == 0
    runs = seen.runs(sqlite_spec.uri)
    assert [run.data.metrics["output_throughput"] for run in runs] == [80.5, 84.5]
    assert [run.info.status for run in runs] == ["FINISHED", "FINISHED"]
