"""How many launches are to go, when they end, and what of them a night holds."""

from __future__ import annotations

import datetime

from sweeper.deadline import NightSpan
from sweeper.deciding.affordable import Purse, kept_back
from sweeper.deciding.durations import BASELINE, Learned
from sweeper.deciding.plan import progress
from sweeper.planning.ending import deadlines, ends, launches_to_go, within
from sweeper.planning.model import Launches, LaunchTime
from sweeper.spec import BudgetSpec

NOW = datetime.datetime(2026, 12, 1, 22, 0, tzinfo=datetime.UTC)
BUDGET = BudgetSpec(trials=20, baseline_every=8, shortlist=6, finalists=2, confirm_launches=5)
TIMES = Learned({BASELINE: (100.0,) * 3, "numbers": (100.0,) * 9}, before_any=999.0)


def fresh(budget: BudgetSpec = BUDGET) -> Launches:
    return launches_to_go(progress((), budget, "output_throughput", space_left=True), budget, is_complete=False)


def test_a_new_sweep_has_its_trials_the_baseline_again_and_the_confirmation() -> None:
    found = fresh()
    assert (found.search, found.controls, found.confirm) == (20, 2, 15)
    assert found.expected == 37
    assert found.at_least == 20 + 2 + 2 * 3  # two rounds of two finalists and the baseline
    assert found.at_most == 37 + 3  # and half of the shortlist again


def test_without_a_confirmation_there_is_nothing_to_launch_again() -> None:
    found = fresh(BUDGET.model_copy(update={"confirm_launches": 0}))
    assert found.at_least == found.expected == found.at_most == 22


def test_a_small_space_ends_the_search() -> None:
    assert within(BUDGET, 5).trials == 6
    assert within(BUDGET, 19) == BUDGET
    assert within(BUDGET, None) == BUDGET


def test_what_is_complete_has_nothing_to_go() -> None:
    before = progress((), BUDGET, "output_throughput", space_left=True)
    assert launches_to_go(before, BUDGET, is_complete=True).at_most == 0


def test_the_end_is_the_expected_launches_at_their_mean_and_its_range_holds_it() -> None:
    time = LaunchTime(mean_s=100, low_s=90, high_s=120, num_timed=9)
    expected, earliest, latest = ends(fresh(), time, 5.0, NOW)
    assert expected == NOW + datetime.timedelta(seconds=3700)
    assert earliest is not None
    assert latest is not None
    assert earliest < expected < latest
    assert latest > NOW + datetime.timedelta(seconds=40 * 120)


def test_an_unknown_launch_has_no_end() -> None:
    assert ends(fresh(), LaunchTime(source="unknown"), 0.0, NOW) == (None, None, None)


def night(left_s: float) -> tuple[list[Purse], NightSpan]:
    span = NightSpan("07:00", NOW, NOW + datetime.timedelta(seconds=left_s))
    return [Purse("budget.until=07:00", left_s, left_s, TIMES, first=60.0, is_time=True)], span


def test_a_long_night_holds_the_whole_search() -> None:
    purses, span = night(100_000)
    (found,) = deadlines(purses, TIMES, BUDGET, fresh(), span)
    assert (found.holds, found.needed) == (22, 22)
    assert found.ends_at == span.ends_at


def test_a_short_night_holds_what_leaves_the_confirmation() -> None:
    purses, span = night(2600)
    (found,) = deadlines(purses, TIMES, BUDGET, fresh(), span)
    assert found.holds is not None
    assert 0 < found.holds < found.needed
    assert found.kept_back_s == kept_back(purses[0], BUDGET, found.holds)
    assert found.holds * 100 + found.kept_back_s <= 2600
    assert (found.holds + 1) * 100 + kept_back(purses[0], BUDGET, found.holds + 1) > 2600


def test_before_any_launch_nobody_knows_what_a_night_holds() -> None:
    nothing = Learned({}, before_any=999.0)
    purses, span = night(2600)
    (found,) = deadlines([purses[0]], nothing, BUDGET, fresh(), span)
    assert (found.holds, found.kept_back_s) == (None, None)


def test_energy_is_counted_by_what_launches_took_of_it() -> None:
    purse = Purse("budget.energy_kwh=1", 1000.0, 1000.0, Learned({"numbers": (100.0,) * 4}, 0.0), first=1.0)
    free = BUDGET.model_copy(update={"confirm_launches": 0})
    (found,) = deadlines([purse], TIMES, free, fresh(free), None)
    assert found.holds == 10
    assert found.kept_back_s is None
