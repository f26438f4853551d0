"""No launch is begun that would not end in time, and the confirmation gets its share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.deciding.affordable import CONFIRMATION, RECHECKS, SEARCH, Decision, Purse, afford
from sweeper.deciding.durations import Learned, kind_of, launch_s, learn
from sweeper.deciding.plan import Step, next_step
from sweeper.records import TrialRecord, TrialState
from sweeper.spec import BudgetSpec
from tests.fakes import config, launch, trial

OBJECTIVE = "output_throughput"
BUDGET = BudgetSpec(trials=50, finalists=2, confirm_launches=4, shortlist=4)
EVEN = Learned({"": (100.0, 100.0, 100.0), "numbers": (100.0, 100.0, 100.0)}, 900.0)


def searched(count: int) -> list[TrialRecord]:
    """A baseline and so many trials of hardly any difference."""
    return [trial(0, [50.0]), *(trial(n, [60.0 + n / 100], m=n) for n in range(1, count + 1))]


def decide(
    trials: Sequence[TrialRecord],
    left: float,
    *,
    whole: float = 1e6,
    cut: frozenset[str] = frozenset(),
    learned: Learned = EVEN,
    budget: BudgetSpec = BUDGET,
) -> Decision:
    def peek(asked: BudgetSpec) -> Step | None:
        return next_step(trials, asked, OBJECTIVE, True)

    return afford(peek, budget, trials, [Purse("time", left, whole, learned, first=250.0, is_time=True)], cut)


def test_with_time_to_spare_nothing_is_left_out() -> None:
    assert decide(searched(4), 1e5) == Decision(BUDGET, frozenset())


def test_the_search_ends_while_the_close_ones_and_the_confirmation_still_fit() -> None:
    needed = 100 + (4 * 3 + 2) * 100  # one more launch, four rounds of three, half of the four found again
    assert decide(searched(4), needed).cut == frozenset()
    ended = decide(searched(4), needed - 1)
    assert ended.cut == {SEARCH}
    assert ended.short_of == ("time",)
    assert ended.budget is not None
    assert ended.budget.trials == 5


def test_the_close_ones_are_left_out_before_the_confirmation_is() -> None:
    ended = decide(searched(4), 12 * 100, cut=frozenset({SEARCH}))
    assert ended.cut == {SEARCH, RECHECKS}
    assert ended.budget is not None
    assert ended.budget.shortlist == 0


def test_a_night_too_short_to_confirm_anything_searches_and_says_so() -> None:
    ended = decide(searched(4), 5 * 100)
    assert ended.cut == {CONFIRMATION}
    assert ended.budget is not None
    assert (ended.budget.trials, ended.budget.confirm_launches) == (50, 0)
    assert decide(searched(4), 99).budget is None


def test_a_short_night_keeps_back_fewer_rounds_but_two() -> None:
    trials = searched(1)
    assert decide(trials, 100 + 3 * 300, whole=1800).cut == frozenset(), "half of the night is three rounds"
    assert decide(trials, 100 + 3 * 300 - 1, whole=1800).cut == {SEARCH}
    assert decide(trials, 100 + 2 * 300, whole=600).cut == frozenset()
    assert decide(trials, 100 + 2 * 300 - 1, whole=600).cut == {SEARCH}, "half of the night is one round"


def test_the_confirmation_goes_on_while_a_launch_fits() -> None:
    trials = [trial(0, [50.0], confirm=[50.0]), trial(1, [60.0], confirm=[60.0]), trial(2, [60.0], m=2)]
    cut = frozenset({SEARCH, RECHECKS})
    assert decide(trials, 100, cut=cut).budget is not None
    assert decide(trials, 99, cut=cut).budget is None


def test_what_was_left_out_stays_so_however_much_is_left() -> None:
    assert decide(searched(4), 1e6, cut=frozenset({SEARCH})).cut == {SEARCH}


def test_before_any_launch_the_longest_start_must_fit() -> None:
    nothing = Learned({}, 900.0)
    assert decide([], 250, learned=nothing).budget == BUDGET
    assert decide([], 249, learned=nothing).budget is None


def test_a_trial_that_was_put_back_needs_only_its_own_time() -> None:
    trials = [*searched(2), trial(3, state=TrialState.RUNNING, m=3)]
    assert decide(trials, 100, cut=frozenset({SEARCH})).budget is not None
    assert decide(trials, 99, cut=frozenset({SEARCH})).budget is None


def test_a_kind_of_its_own_is_judged_by_its_own_launches() -> None:
    learned = learn(
        [
            trial(0, [50.0] * 3, kind="none"),
            *(trial(n, [60.0], kind="slow", m=n) for n in (1, 2, 3)),
            *(trial(n, [60.0], kind="quick", m=n) for n in (4, 5, 6)),
        ],
        lambda record: {"slow": 500.0, "quick": 50.0, "none": 100.0}[str(record.canonical.flags["kind"])],
        900.0,
    )
    assert learned.upper("kind=slow") == pytest.approx(500)
    assert learned.upper("kind=quick") == pytest.approx(50)
    assert learned.upper("kind=never seen") >= 500
    assert learned.upper(None) >= 500


def test_numbers_are_no_kind() -> None:
    base = config(kind="none", m=1)
    assert kind_of(config(kind="map", m=9), base) == kind_of(config(kind="map", m=2), base) == "kind=map"
    assert kind_of(config(kind="none", m=9), base) == ""


def test_an_estimate_and_a_failure_teach_nothing() -> None:
    early = launch(60.0, trial=1).model_copy(update={"estimated": "stopped early"})
    trials = [trial(0, [50.0]), trial(1).model_copy(update={"launches": (early,)})]
    assert learn(trials, launch_s, 900.0).by_kind == {"": (10.0,)}


def test_a_launch_is_timed_by_the_clock_that_nobody_sets() -> None:
    made = launch(60.0)
    assert launch_s(made) == 10
    assert launch_s(made.model_copy(update={"metrics": {"launch_s": 12.0}})) == 12
    assert launch_s(made.model_copy(update={"ended_at": made.started_at.replace(year=2025)})) == 0


@given(st.lists(st.floats(1, 1e4), min_size=1, max_size=30), st.integers(1, 40))
def test_bounds_are_above_what_was_seen_and_never_absurd(values: list[float], count: int) -> None:
    learned = Learned({"": tuple(values)}, 1.0)
    one = learned.upper("")
    assert max(values) <= one <= 2 * max(values)
    assert sum(values) / len(values) * count * 0.999 <= learned.total(count, 0) <= count * one * 1.001


def test_everything_that_runs_out_must_suffice() -> None:
    trials = searched(4)
    time = Purse("time", 1e6, 1e6, EVEN, 250.0, is_time=True)
    energy = replace(time, name="energy", left=99.0, is_time=False)

    def peek(asked: BudgetSpec) -> Step | None:
        return next_step(trials, asked, OBJECTIVE, True)

    assert afford(peek, BUDGET, trials, [time, energy], frozenset()).short_of == ("energy",)
