"""Who is launched again before the finalists are known."""

from __future__ import annotations

import datetime

from sweeper.deciding.lossless import everyone
from sweeper.deciding.plan import Step, control_is_due, next_step, progress
from sweeper.deciding.shortlist import Shortlist, shortlist
from sweeper.errors import FailureKind
from sweeper.records import Failure, LaunchRecord, Purpose, TrialRecord
from sweeper.spec import BudgetSpec
from tests.fakes import EPOCH, launch, trial

OBJECTIVE = "output_throughput"
BUDGET = BudgetSpec(trials=10, shortlist=4, finalists=2, confirm_launches=3)


def night(baseline: float, *values: float) -> list[TrialRecord]:
    """A search of one launch each."""
    return [trial(number, [value], m=number) for number, value in enumerate((baseline, *values))]


def also(trials: list[TrialRecord], number: int, value: float | None, purpose: Purpose, **more: object) -> None:
    """One more launch, after all that there are."""
    last = max(x.started_at for t in trials for x in t.launches)
    made = launch(value, trial=number, number=len(trials[number].launches), purpose=purpose)
    made = made.model_copy(update={"started_at": last + datetime.timedelta(minutes=10), **more})
    trials[number] = trials[number].model_copy(update={"launches": (*trials[number].launches, made)})


def found(trials: list[TrialRecord], budget: BudgetSpec = BUDGET) -> Shortlist:
    return shortlist(trials, budget, OBJECTIVE, everyone)


def test_those_as_close_as_noise_are_launched_again_the_best_first_and_no_more_than_the_list_holds() -> None:
    trials = night(50, 51, 50.5, 51.5, 30, 50.8, 50.2)
    assert found(trials).pending == (3, 1, 5, 2)


def test_where_the_differences_are_clear_nobody_is() -> None:
    trials = night(50, 70, 60, 55, 40, 30)
    assert found(trials) == Shortlist(finalists=(1, 2))


def test_without_hope_to_beat_the_baseline_nobody_is() -> None:
    assert found(night(90, 82.3, 82.1, 81.7)).pending == ()


def test_the_field_is_halved_until_there_are_only_finalists() -> None:
    trials = night(50, 51, 50.9, 50.8, 50.7)
    for number, value in ((1, 49.0), (2, 51.2), (3, 51.4), (4, 50.0)):
        assert number in found(trials).pending
        also(trials, number, value, Purpose.RECHECK)
    assert found(trials) == Shortlist(finalists=(3, 2))


def test_a_value_that_comes_in_does_not_change_who_else_is_in_the_round() -> None:
    trials = night(50, 51, 50.9, 50.8, 50.7)
    also(trials, 1, 80.0, Purpose.RECHECK)
    also(trials, 0, 90.0, Purpose.CONTROL)
    assert found(trials).pending == (2, 3, 4)


def test_confirming_launches_do_not_change_who_is_a_finalist() -> None:
    trials = night(50, 70, 60, 40)
    also(trials, 1, 30.0, Purpose.CONFIRM)
    also(trials, 0, 90.0, Purpose.CONFIRM)
    assert found(trials).finalists == (1, 2)


def test_who_was_measured_late_on_a_host_that_slows_is_ranked_as_of_the_same_time() -> None:
    trials = night(50.0, 55.0, 54.0, 53.0)
    for value in (48.0, 46.0, 44.1, 42.0):
        also(trials, 0, value, Purpose.CONTROL)
    trials.append(trial(4, m=4))
    also(trials, 4, 50.0, Purpose.SEARCH)  # 1.19 x the baseline of that hour; the first one had 1.1 x
    ranked = [*found(trials).pending, *found(trials).finalists]
    assert ranked[0] == 4


def test_an_estimate_is_no_candidate() -> None:
    trials = night(50, 51, 51, 51)
    hopeless = trials[2].launches[0].model_copy(update={"estimated": "stopped after 1 of 5 prompts"})
    trials[2] = trials[2].model_copy(update={"launches": (hopeless,)})
    assert found(trials).pending == (1, 3) or found(trials).finalists == (1, 3)


def test_nobody_who_may_not_win_is_launched_again() -> None:
    trials = night(50, 51, 51, 51, 51)
    chosen = shortlist(trials, BUDGET, OBJECTIVE, lambda candidate: candidate.number != 2)
    assert chosen.pending == (1, 3, 4)


def test_a_second_launch_lost_to_the_host_is_made_again_and_one_that_crashes_is_not() -> None:
    trials = night(50, 51, 50.9, 50.8)
    lost = Failure(kind=FailureKind.HOST_LOST, message="gone")
    crash = Failure(kind=FailureKind.SERVER_CRASH, message="dead")
    also(trials, 1, None, Purpose.RECHECK, failure=lost)
    also(trials, 2, None, Purpose.RECHECK, failure=crash)
    assert found(trials).pending == (1, 3)


def test_a_search_that_goes_on_later_has_its_close_ones_launched_again_too() -> None:
    trials = night(50, 51, 50.9, 50.8)
    for number in (1, 2, 3):
        also(trials, number, 51.0, Purpose.RECHECK)
    assert found(trials).pending == ()
    trials.append(trial(4, m=4))
    also(trials, 4, 51.5, Purpose.SEARCH)
    assert found(trials).pending == (4,)


def test_noise_that_was_seen_makes_the_list_longer() -> None:
    quiet, noisy = night(50, 60, 55.5, 55.4), night(50, 60, 55.5, 55.4)
    for value, other in ((50.1, 55.0), (50.0, 46.0), (49.9, 52.0)):
        also(quiet, 0, value, Purpose.CONTROL)
        also(noisy, 0, other, Purpose.CONTROL)
    for trials in (quiet, noisy):
        for number in (1, 2, 3):  # the search ended after the controls
            record: LaunchRecord = trials[number].launches[0]
            later = record.model_copy(update={"started_at": EPOCH + datetime.timedelta(hours=9, minutes=number)})
            trials[number] = trials[number].model_copy(update={"launches": (later,)})
    assert found(quiet).pending == ()
    assert found(noisy).pending == (1, 2, 3)


def test_the_baseline_is_launched_again_after_so_many_others() -> None:
    budget = BudgetSpec(trials=20, baseline_every=3, finalists=1, confirm_launches=0)
    trials = night(50, 51, 52)
    assert next_step(trials, budget, OBJECTIVE, True) == Step(Purpose.SEARCH, None)
    trials = night(50, 51, 52, 53)
    assert next_step(trials, budget, OBJECTIVE, True) == Step(Purpose.CONTROL, 0)
    also(trials, 0, 50.0, Purpose.CONTROL)
    assert next_step(trials, budget, OBJECTIVE, True) == Step(Purpose.SEARCH, None)
    assert not control_is_due(trials, 0)


def test_a_control_that_was_lost_to_the_host_is_made_again_and_one_that_failed_otherwise_waits() -> None:
    for kind, due in ((FailureKind.HOST_LOST, True), (FailureKind.SERVER_CRASH, False)):
        trials = night(50, 51, 52, 53)
        also(trials, 0, None, Purpose.CONTROL, failure=Failure(kind=kind, message="it failed"))
        assert control_is_due(trials, 3) is due


def test_close_ones_and_the_baseline_take_turns() -> None:
    budget = BudgetSpec(trials=5, baseline_every=4, shortlist=4, finalists=2, confirm_launches=2)
    trials = night(50, 51, 50.9, 50.8, 50.7)
    made = []
    while (step := next_step(trials, budget, OBJECTIVE, True)) is not None:
        made.append((step.purpose.value, step.trial_number))
        also(trials, step.trial_number or 0, 50.0 + (step.trial_number or 0) / 100, step.purpose)
    controls = [index for index, (purpose, _) in enumerate(made) if purpose == "control"]
    assert [purpose for purpose, _ in made[:7]] == ["control", "recheck", "recheck"] * 2 + ["confirm"]
    assert controls == [0, 3]


def test_what_is_left_counts_the_launches_of_the_close_ones() -> None:
    budget = BudgetSpec(trials=5, baseline_every=4, shortlist=4, finalists=2, confirm_launches=2)
    trials = night(50, 51, 50.9, 50.8, 50.7)
    assert progress(trials, budget, OBJECTIVE, True).launches_left == 4 + 2 + 6
    assert progress(night(50, 70, 60, 40, 30), budget, OBJECTIVE, True).launches_left == 6
