"""Whose launches are compared with whose, and what a worker launches next: without any database."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import pytest

from sweeper.deciding.hosts import levels_of, on_scale_of, scale_text, value_to_tell
from sweeper.deciding.plan import Step
from sweeper.deciding.sharing import Crew, Ranking, Wait, scale_host, shared_step
from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState
from sweeper.spec import BudgetSpec
from tests.fakes import EPOCH, launch, trial

OBJECTIVE = "output_throughput"
RANKING = Ranking(OBJECTIVE)
BUDGET = BudgetSpec(trials=4, finalists=1, confirm_launches=2)


def on(host: str, made: LaunchRecord, minute: float | None = None, **facts: str) -> LaunchRecord:
    """The launch as `host` made it."""
    update: dict[str, object] = {"host": host, "provenance": {"host": host, **facts}}
    if minute is not None:
        began = EPOCH + datetime.timedelta(minutes=minute)
        update |= {"started_at": began, "ended_at": began}
    return made.model_copy(update=update)


def of(number: int, launches: Sequence[LaunchRecord], state: TrialState = TrialState.COMPLETE) -> TrialRecord:
    made = trial(number, state=state, m=number)
    return made.model_copy(update={"launches": tuple(launches)})


def baseline(**values: float) -> TrialRecord:
    """Trial 0, launched once on each host."""
    launches = [
        on(host, launch(value, number=number, purpose=Purpose.BASELINE))
        for number, (host, value) in enumerate(values.items())
    ]
    return of(0, launches)


def found(number: int, host: str, value: float) -> TrialRecord:
    return of(number, [on(host, launch(value, trial=number, repeats=(value,)))])


def test_a_value_of_another_host_is_multiplied_by_the_ratio_of_the_baselines() -> None:
    trials = [baseline(a=50.0, b=40.0), found(1, "a", 60.0), found(2, "b", 48.0)]
    seen = on_scale_of(trials, OBJECTIVE, "a")
    assert [t.mean(OBJECTIVE) for t in seen] == pytest.approx([50.0, 60.0, 60.0])
    assert seen[2].launches[0].repeat_throughputs == pytest.approx((60.0,))
    assert [t.mean(OBJECTIVE) for t in on_scale_of(trials, OBJECTIVE, "b")] == pytest.approx([40.0, 48.0, 48.0])


def test_a_study_of_one_host_is_left_as_it_is() -> None:
    trials = (baseline(a=50.0), found(1, "a", 60.0))
    assert on_scale_of(trials, OBJECTIVE, "a") == trials
    assert on_scale_of(trials, OBJECTIVE, "") == trials
    assert scale_text(trials, OBJECTIVE, "a") == ""


def test_a_drifting_host_is_compared_by_its_baseline_of_the_same_moment() -> None:
    """Host b loses a tenth of its speed per hour; its configuration is as fast as a's own baseline's 1.2 x."""
    hours = (0.0, 1.0, 2.0, 3.0, 4.0)
    theirs = [
        on("b", launch(40 * 0.9**h, number=i + 1, purpose=Purpose.CONTROL), 60 * h) for i, h in enumerate(hours)
    ]
    ours = on("a", launch(50.0, purpose=Purpose.BASELINE), 0)
    late = of(1, [on("b", launch(1.2 * 40 * 0.9**3.5, trial=1), 210)])
    seen = on_scale_of([of(0, [ours, *theirs]), late], OBJECTIVE, "a")
    assert seen[1].mean(OBJECTIVE) == pytest.approx(60.0, rel=1e-6)


def test_hosts_with_other_gpus_are_kept_apart_and_that_is_said() -> None:
    first = on("a", launch(50.0, purpose=Purpose.BASELINE), gpus="H100", driver="1")
    other = on("b", launch(40.0, number=1, purpose=Purpose.BASELINE), gpus="A100", driver="2")
    theirs = of(1, [on("b", launch(48.0, trial=1), gpus="A100", driver="2")])
    trials = [of(0, [first, other]), theirs]
    assert on_scale_of(trials, OBJECTIVE, "a")[1].measured == ()
    assert "b is kept apart (gpus: H100 here, A100 there)" in scale_text(trials, OBJECTIVE, "a")


def test_another_driver_alone_keeps_no_host_apart() -> None:
    first = on("a", launch(50.0, purpose=Purpose.BASELINE), driver="1")
    other = on("b", launch(40.0, number=1, purpose=Purpose.BASELINE), driver="2")
    trials = [of(0, [first, other]), of(1, [on("b", launch(48.0, trial=1), driver="2")])]
    assert on_scale_of(trials, OBJECTIVE, "a")[1].mean(OBJECTIVE) == pytest.approx(60.0)


def test_nothing_of_a_host_that_never_measured_the_baseline_is_compared() -> None:
    seen = on_scale_of([baseline(a=50.0, c=60.0), found(1, "b", 48.0)], OBJECTIVE, "a")
    assert seen[1].launches == ()


def test_confirming_launches_of_another_host_are_left_out() -> None:
    again = on("b", launch(48.0, trial=1, number=1, purpose=Purpose.CONFIRM))
    trials = [baseline(a=50.0, b=40.0), of(1, [on("a", launch(60.0, trial=1)), again])]
    assert [n.host for n in on_scale_of(trials, OBJECTIVE, "a")[1].launches] == ["a"]


def test_the_search_is_told_values_on_the_scale_of_the_first_host() -> None:
    trials = [baseline(a=50.0, b=40.0)]
    assert value_to_tell(trials, OBJECTIVE, on("b", launch(48.0, trial=1))) == pytest.approx(60.0)
    assert value_to_tell(trials, OBJECTIVE, on("a", launch(48.0, trial=1))) == 48.0
    assert list(levels_of(trials, OBJECTIVE)) == ["a", "b"]


def step(trials: Sequence[TrialRecord], crew: Crew, budget: BudgetSpec = BUDGET) -> Step | Wait | None:
    return shared_step(trials, crew, budget, RANKING, space_left=True)


def test_the_first_worker_begins_the_baseline_and_the_second_one_measures_its_own() -> None:
    assert step([], Crew("a")) == Step(Purpose.BASELINE, None)
    under_way = trial(0, state=TrialState.RUNNING)
    assert step([under_way], Crew("b", busy=frozenset({0}))) == Step(Purpose.BASELINE, 0)
    assert step([baseline(a=50.0)], Crew("b")) == Step(Purpose.BASELINE, 0)


def test_trials_under_way_elsewhere_count_and_are_left_alone() -> None:
    under_way = [trial(n, state=TrialState.RUNNING, m=n) for n in (1, 2)]
    trials = [baseline(a=50.0), *under_way]
    assert step(trials, Crew("a", busy=frozenset({1, 2}))) == Step(Purpose.SEARCH, None)
    third = trial(3, state=TrialState.RUNNING, m=3)
    assert isinstance(step([*trials, third], Crew("a", busy=frozenset({1, 2, 3}))), Wait)


def test_a_trial_that_is_nobody_s_comes_first() -> None:
    trials = [baseline(a=50.0), trial(1, state=TrialState.RUNNING, m=1), trial(2, state=TrialState.RUNNING, m=2)]
    assert step(trials, Crew("a", busy=frozenset({1}))) == Step(Purpose.SEARCH, 2)


def test_a_host_takes_nothing_over_before_it_has_a_baseline() -> None:
    trials = [baseline(a=50.0), trial(1, state=TrialState.RUNNING, m=1)]
    full = BUDGET.model_copy(update={"trials": 2})
    assert step(trials, Crew("b"), full) == Step(Purpose.BASELINE, 0)
    assert step(trials, Crew("a"), full) == Step(Purpose.SEARCH, 1)


def test_the_baseline_is_due_by_the_launches_of_the_own_host_alone() -> None:
    budget = BUDGET.model_copy(update={"trials": 9, "baseline_every": 2})
    trials = [baseline(a=50.0, b=40.0), *(found(n, "b", 44.0) for n in (1, 2, 3))]
    assert step(trials, Crew("b"), budget) == Step(Purpose.CONTROL, 0)
    assert step(trials, Crew("a"), budget) == Step(Purpose.SEARCH, None)


CLOSED = (baseline(a=50.0, b=40.0), found(1, "a", 60.0), found(2, "b", 36.0), found(3, "b", 30.0))


def test_the_finalists_are_confirmed_by_whoever_is_first_and_the_others_wait() -> None:
    assert step(CLOSED, Crew("b")) == Step(Purpose.CONFIRM, 0)
    waiting = step(CLOSED, Crew("b", closing_host="a", is_closing=True))
    assert waiting == Wait("the finalists are launched in turn on host a")


def test_when_the_confirming_worker_is_gone_another_host_confirms_from_the_start() -> None:
    made = on("a", launch(50.0, number=9, purpose=Purpose.CONFIRM), 200)
    trials = (of(0, [*CLOSED[0].launches, made]), *CLOSED[1:])
    assert step(trials, Crew("a", closing_host="a", is_closing=True)) == Step(Purpose.CONFIRM, 1)
    assert step(trials, Crew("b", closing_host="a")) == Step(Purpose.CONFIRM, 0)
    assert scale_host(trials, OBJECTIVE, "b") == "b"


def test_close_ones_are_launched_again_by_several_workers_at_once() -> None:
    budget = BUDGET.model_copy(update={"shortlist": 3})
    trials = (baseline(a=50.0, b=40.0), found(1, "a", 60.0), found(2, "b", 48.1), found(3, "a", 59.9))
    first = step(trials, Crew("a"), budget)
    assert isinstance(first, Step)
    assert first.purpose is Purpose.RECHECK
    other = step(trials, Crew("b", busy=frozenset({first.trial_number or 0})), budget)
    assert isinstance(other, Step)
    assert (other.purpose, other.trial_number != first.trial_number) == (Purpose.RECHECK, True)
    assert isinstance(step(trials, Crew("a", busy=frozenset({1, 2, 3})), budget), Wait)
