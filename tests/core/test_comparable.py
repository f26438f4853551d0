"""Which launches are compared: those of the newest baseline's provenance."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.deciding.comparable import comparable
from sweeper.errors import FailureKind
from sweeper.records import LaunchRecord, TrialRecord, TrialState
from tests.analysis.builders import Night, failed, measured, new_night, ngram, plain_config, trial
from tests.analysis.studies import changed

OLD, NEW = {"driver": "550", "host": "gpu1"}, {"driver": "570", "host": "gpu1"}


def of(night: Night, facts: Mapping[str, str]) -> LaunchRecord:
    return changed(measured(night, 40.0), provenance=facts)


def launches(trials: tuple[TrialRecord, ...]) -> list[tuple[int, int]]:
    return [(n.trial_number, n.launch_number) for t in trials for n in t.launches]


def test_the_newest_baseline_is_the_measure_also_for_its_own_older_launches() -> None:
    night = new_night()
    old, new = of(night, OLD), of(night, NEW)
    kept, aside = comparable([trial(0, plain_config(), [old, new]), trial(1, ngram(3, 4), [old, new])])
    assert launches(kept) == [(0, 1), (1, 1)]
    assert [(found.launch.trial_number, found.launch.launch_number) for found in aside] == [(0, 0), (1, 0)]
    assert aside[0].differing == {"driver": ("570", "550")}


def test_a_trial_without_a_comparable_launch_is_left_out() -> None:
    night = new_night()
    kept, aside = comparable([trial(0, plain_config(), [of(night, NEW)]), trial(1, ngram(3, 4), [of(night, OLD)])])
    assert [found.number for found in kept] == [0]
    assert len(aside) == 1


def test_failed_trials_stay() -> None:
    night = new_night()
    lost = changed(failed(night, FailureKind.OUT_OF_MEMORY), provenance=OLD)
    trials = [
        trial(0, plain_config(), [of(night, NEW)]),
        trial(1, ngram(3, 4), [lost], TrialState.INFEASIBLE),
        trial(2, ngram(3, 5), [], TrialState.RUNNING),
    ]
    assert comparable(trials) == (tuple(trials), ())


def test_what_a_launch_did_not_write_down_is_no_difference() -> None:
    night = new_night()
    trials = [trial(0, plain_config(), [of(night, NEW)]), trial(1, ngram(3, 4), [of(night, {"nccl": "2.21"})])]
    assert comparable(trials)[1] == ()


def test_a_newer_specsweep_goes_on_with_a_study() -> None:
    night = new_night()
    trials = [
        trial(0, plain_config(), [of(night, {**NEW, "specsweep_version": "2"})]),
        trial(1, ngram(3, 4), [of(night, {**NEW, "specsweep_version": "1"})]),
    ]
    assert comparable(trials)[1] == ()


def test_before_the_baseline_is_measured_everything_is_kept() -> None:
    night = new_night()
    trials = [
        trial(0, plain_config(), [failed(night, FailureKind.HOST_LOST)], TrialState.RUNNING),
        trial(1, ngram(3, 4), [of(night, OLD)]),
    ]
    assert comparable(trials) == (tuple(trials), ())
    assert comparable([]) == ((), ())


def test_another_name_of_the_workload_or_the_models_revision_forbids_nothing() -> None:
    night = new_night()
    old = of(night, {"workload": "chat", "model_revision": "a", **NEW})
    new = of(night, {"workload": "talk", "model_revision": "b", **NEW})
    assert comparable([trial(0, plain_config(), [old, new])])[1] == ()
