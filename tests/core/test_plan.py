from __future__ import annotations

import datetime

import pytest

from sweeper.deciding.confirm import confirmations
from sweeper.deciding.fresh import before_confirming
from sweeper.deciding.lossless import everyone
from sweeper.deciding.plan import Step, control_is_due, next_step, progress, start_limit_s
from sweeper.deciding.shortlist import shortlist
from sweeper.deciding.verdict import VerdictKind, decide
from sweeper.errors import FailureKind
from sweeper.policy import POLICY, Fault
from sweeper.records import Purpose, TrialRecord, TrialState
from sweeper.spec import BudgetSpec
from tests.fakes import EPOCH, launch, trial

OBJECTIVE = "output_throughput"
BUDGET = BudgetSpec(trials=4, finalists=2, confirm_launches=2)


def measured() -> list[TrialRecord]:
    return [trial(0, [50]), trial(1, [60], m=1), trial(2, [40], m=2), trial(3, [70], m=3)]


def pending(trials: list[TrialRecord], budget: BudgetSpec) -> list[int]:
    """The confirming launches still to make."""
    chosen = finalists(trials, budget)
    rivals = [trial for number in chosen for trial in trials if trial.number == number]
    before = before_confirming(trials, OBJECTIVE, chosen)
    return confirmations(trials[0], rivals, budget.confirm_launches, OBJECTIVE, before)


def finalists(trials: list[TrialRecord], budget: BudgetSpec) -> tuple[int, ...]:
    return shortlist(trials, budget, OBJECTIVE, everyone).finalists


def test_the_baseline_comes_first() -> None:
    assert next_step([], BUDGET, OBJECTIVE, True) == Step(Purpose.BASELINE, None)


def test_an_unfinished_trial_comes_before_a_new_one() -> None:
    trials = [trial(0, [50]), trial(1, state=TrialState.RUNNING, m=1)]
    assert next_step(trials, BUDGET, OBJECTIVE, True) == Step(Purpose.SEARCH, 1)


def test_an_unfinished_baseline_is_still_the_baseline() -> None:
    assert next_step([trial(0, state=TrialState.RUNNING)], BUDGET, OBJECTIVE, True) == Step(Purpose.BASELINE, 0)


def test_the_budget_is_a_total_that_counts_failures_and_the_baseline() -> None:
    failed = trial(3, state=TrialState.INFEASIBLE, failure=FailureKind.OUT_OF_MEMORY, m=3)
    step = next_step([*measured()[:3], failed], BUDGET, OBJECTIVE, True)
    assert step == Step(Purpose.CONFIRM, 0)


def test_finalists_are_confirmed_in_turn_with_the_baseline_every_other_time_in_reverse() -> None:
    assert pending(measured(), BUDGET) == [0, 3, 1, 1, 3, 0]


def test_a_confirmation_already_made_is_not_made_again() -> None:
    trials = measured()
    trials[0] = trial(0, [50], confirm=[51])
    assert pending(trials, BUDGET) == [3, 1, 1, 3, 0]


def test_finalists_are_chosen_by_their_first_measurement_so_that_a_resume_chooses_the_same() -> None:
    trials = measured()
    trials[3] = trial(3, [70], confirm=[10, 10], m=3)
    assert finalists(trials, BUDGET) == (3, 1)


def test_a_confirmation_lost_to_the_host_is_made_again_but_a_crash_counts() -> None:
    lost = launch(None, trial=0, number=1, purpose=Purpose.CONFIRM, failure=FailureKind.HOST_LOST)
    crash = launch(None, trial=3, number=1, purpose=Purpose.CONFIRM, failure=FailureKind.SERVER_CRASH)
    trials = measured()
    trials[0] = trials[0].model_copy(update={"launches": (*trials[0].launches, lost)})
    trials[3] = trials[3].model_copy(update={"launches": (*trials[3].launches, crash)})
    assert pending(trials, BUDGET) == [1, 0, 1, 3, 0]


def test_a_finalist_of_a_later_search_is_confirmed_with_the_baseline_of_the_same_hour() -> None:
    old = [trial(0, [50], confirm=[50, 51]), trial(1, [60], confirm=[60, 61], m=1), trial(2, [40], m=2)]
    budget = BudgetSpec(trials=8, finalists=1, confirm_launches=2)
    assert pending(old, budget) == []
    later = [*old, trial(7, [80], m=7)]
    assert pending(later, budget) == [7, 0, 7, 0]


def test_a_newer_finalist_that_only_crashes_does_not_bring_last_nights_confirmation_back() -> None:
    """Neither for what is launched next nor for the verdict; at no moment do the two nights mix."""
    old = [trial(0, [50], confirm=[50, 51]), trial(1, [60], confirm=[60, 61], m=1), trial(2, [40], m=2)]
    budget = BudgetSpec(trials=8, finalists=2, confirm_launches=2)
    newer = launch(80, trial=7).model_copy(update={"started_at": EPOCH + datetime.timedelta(hours=9)})
    trials = [*old, trial(7, m=7).model_copy(update={"launches": (newer,)})]
    assert decide(trials, OBJECTIVE, lambda _: (0.0,)).confirmed
    hour, made = 10.0, []
    while (step := next_step(trials, budget, OBJECTIVE, False)) is not None:
        at = next(i for i, one in enumerate(trials) if one.number == step.trial_number)
        trials[at] = confirmed_at(trials[at], hour, {0: 50.0, 1: 49.0, 7: None}[trials[at].number])
        made.append(trials[at].number)
        hour += 0.1
        verdict = decide(trials, OBJECTIVE, lambda _: (0.0,))
        assert verdict.kind is VerdictKind.NO_GAIN
        assert not verdict.confirmed or verdict.num_baseline_launches <= 2
    assert made == [7, 0, 1, 1, 7, 0]
    assert verdict.confirmed
    assert verdict.comparisons[0].speedup == pytest.approx(0.98)


def confirmed_at(record: TrialRecord, hour: float, value: float | None) -> TrialRecord:
    """With one more confirming launch, which crashes where it has no value."""
    crash = FailureKind.SERVER_CRASH if value is None else None
    number = len(record.launches)
    made = launch(value, trial=record.number, number=number, purpose=Purpose.CONFIRM, failure=crash)
    made = made.model_copy(update={"started_at": EPOCH + datetime.timedelta(hours=hour)})
    return record.model_copy(update={"launches": (*record.launches, made)})


def with_facts(record: TrialRecord, at: int, **facts: str) -> TrialRecord:
    """The trial with its launch `at` measured on a host of these facts."""
    launches = list(record.launches)
    launches[at] = launches[at].model_copy(update={"provenance": facts})
    return record.model_copy(update={"launches": tuple(launches)})


def on(driver: str, *records: TrialRecord) -> list[TrialRecord]:
    """The trials with all their launches measured under this driver."""
    found = []
    for record in records:
        for at in range(len(record.launches)):
            record = with_facts(record, at, driver=driver)
        found.append(record)
    return found


def test_after_a_new_driver_the_baseline_is_launched_at_once() -> None:
    budget = BudgetSpec(trials=9, baseline_every=5, finalists=1, confirm_launches=0)
    trials = on("550", trial(0, [50]), trial(1, [60], m=1))
    assert not control_is_due(trials, 5)
    trials[1] = with_facts(trials[1], 0, driver="570")
    assert next_step(trials, budget, OBJECTIVE, True) == Step(Purpose.CONTROL, 0)


def test_confirming_launches_on_another_driver_are_made_again_after_the_baselines() -> None:
    """The verdict compares nothing across drivers; nor does the plan count it."""
    budget = BudgetSpec(trials=2, finalists=1, confirm_launches=2)
    trials = on("550", trial(0, [50], confirm=[50]), trial(1, [60], confirm=[60, 60], m=1))
    trials[1] = with_facts(trials[1], 2, driver="570")
    assert next_step(trials, budget, OBJECTIVE, True) == Step(Purpose.CONFIRM, 0)
    trials[0] = with_facts(on("550", trial(0, [50], confirm=[50, 50]))[0], 2, driver="570")
    newest = trials[0].launches[2].model_copy(update={"started_at": EPOCH + datetime.timedelta(hours=9)})
    trials[0] = trials[0].model_copy(update={"launches": (*trials[0].launches[:2], newest)})
    assert next_step(trials, budget, OBJECTIVE, True) == Step(Purpose.CONFIRM, 1)


def test_a_finalist_that_was_only_measured_on_another_driver_is_confirmed_all_the_same() -> None:
    budget = BudgetSpec(trials=2, finalists=1, confirm_launches=2)
    trials = on("550", trial(0, [50, 51]), trial(1, [60], m=1))
    trials[0] = with_facts(trials[0], 1, driver="570")
    assert next_step(trials, budget, OBJECTIVE, True) == Step(Purpose.CONFIRM, 0)
    assert progress(trials, budget, OBJECTIVE, True).launches_left == 4


def test_a_clear_winner_is_clear_sooner_where_many_were_launched_twice() -> None:
    budget = BudgetSpec(trials=8, finalists=1, confirm_launches=4)
    contest = [trial(0, [50], confirm=[50.0, 50.4]), trial(1, [53], confirm=[52.6, 53.0], m=1)]
    others = [trial(n, [40.0 + n, 40.4 + n, 40.2 + n], m=n) for n in range(2, 8)]
    assert next_step(contest, budget, OBJECTIVE, False) is not None
    assert next_step([*contest, *others], budget, OBJECTIVE, False) is None


def test_a_host_that_changes_again_and_again_is_not_confirmed_for_ever() -> None:
    """Each launch of the finalist is made under a driver that the baseline, which crashes, never had."""
    budget = BudgetSpec(trials=2, finalists=1, confirm_launches=2)
    trials = on("550", trial(0, [50]), trial(1, [60], m=1))
    for made in range(40):
        if (step := next_step(trials, budget, OBJECTIVE, True)) is None:
            break
        number = step.trial_number or 0
        value, failure = (60.0, None) if number else (None, FailureKind.SERVER_CRASH)
        new = launch(value, trial=number, number=made + 1, purpose=step.purpose, failure=failure)
        later = EPOCH + datetime.timedelta(hours=2 + made)
        new = new.model_copy(update={"started_at": later, "provenance": {"driver": f"6{made}"}})
        trials[number] = trials[number].model_copy(update={"launches": (*trials[number].launches, new)})
    assert next_step(trials, budget, OBJECTIVE, True) is None


def test_the_live_view_shows_only_what_the_verdict_compares() -> None:
    old = on("550", trial(1, [90], m=1))
    new = on("570", trial(0, [50]), trial(2, [60], m=2))
    state = progress([new[0], old[0], new[1]], BUDGET, OBJECTIVE, True)
    assert (state.best_value, state.baseline_value) == (60, 50)
    assert state.trials_done == 3


def test_an_exhausted_space_ends_the_search_early() -> None:
    trials = measured()[:2]
    assert next_step(trials, BUDGET, OBJECTIVE, False) == Step(Purpose.CONFIRM, 0)
    assert progress(trials, BUDGET, OBJECTIVE, False).trials_total == 2


def test_without_confirmation_the_sweep_ends_after_the_search() -> None:
    budget = BudgetSpec(trials=4, finalists=2, confirm_launches=0)
    assert next_step(measured(), budget, OBJECTIVE, True) is None


def test_progress_counts_what_is_left_and_estimates_from_measured_launches() -> None:
    state = progress(measured()[:2], BUDGET, OBJECTIVE, True)
    assert (state.trials_done, state.trials_total, state.launches_left) == (2, 4, 2 + 6)
    assert state.eta_s == 80
    assert (state.baseline_value, state.best_value) == (50, 60)


def test_every_failure_kind_has_a_policy() -> None:
    assert set(POLICY) == set(FailureKind)
    for kind, policy in POLICY.items():
        assert (policy.max_launches is None) == (policy.fault is Fault.HOST), kind


def test_a_start_may_take_what_is_configured_until_three_have_been_seen() -> None:
    assert start_limit_s(started(300, 310), 1800) == 1800
    assert start_limit_s(started(300, 310, 305), 1800) == 2 * 310 + 120
    assert start_limit_s(started(1000, 1000, 1000), 1800) == 1800, "never more than what is configured"


def started(*seconds: float) -> list[TrialRecord]:
    """Trials whose one launch took so long to start."""
    trials = [trial(n, [50], m=n) for n in range(len(seconds))]
    return [
        one.model_copy(update={"launches": (one.launches[0].model_copy(update={"metrics": {"start_s": s}}),)})
        for one, s in zip(trials, seconds, strict=True)
    ]
