from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.deciding.course import MAX_POINTS, best_so_far, last_failures, luck_pct
from sweeper.deciding.plan import progress
from sweeper.errors import FailureKind
from sweeper.records import TrialState
from sweeper.spec import BudgetSpec
from sweeper.standing.eta import Eta, eta_of
from sweeper.standing.phases import PhaseTimes
from sweeper.standing.spark import sparkline
from tests.fakes import launch, trial

OBJECTIVE = "output_throughput"
BUDGET = BudgetSpec(trials=10, finalists=1, confirm_launches=2)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=300))
def test_the_course_never_falls_and_ends_with_the_best(values: list[float]) -> None:
    course = best_so_far(values)
    assert len(course) <= MAX_POINTS
    assert list(course) == sorted(course)
    assert (course[0], course[-1]) == (values[0], max(values))


@given(st.lists(st.floats(0.1, 1e6), max_size=80), st.integers(-3, 100))
def test_a_sparkline_is_never_wider_than_asked(values: list[float], width: int) -> None:
    assert len(sparkline(values, width)) <= max(0, width)
    assert sparkline(values, width, ascii_only=True).isascii()


def test_a_sparkline_goes_from_the_smallest_to_the_largest() -> None:
    assert sparkline([1, 2, 8], 10) == "▁▂█"
    assert sparkline([5, 5], 10) == "▄▄"


def test_the_newest_failures_come_first_and_measured_launches_never() -> None:
    failed = [trial(n, failure=FailureKind.OUT_OF_MEMORY, state=TrialState.INFEASIBLE) for n in range(1, 6)]
    found = last_failures([trial(0, [50]), *failed])
    assert [launch.trial_number for launch in found] == [5, 4, 3]


def test_the_more_rivals_the_more_chance_may_show() -> None:
    trials = (trial(0, [50, 50.5, 49.6]), trial(1, [52]))
    few, many = (luck_pct(trials, trials[1], rivals, OBJECTIVE) or 0.0 for rivals in (1, 1000))
    assert 0 < few < many


def test_before_the_baseline_nothing_is_known_of_chance() -> None:
    assert luck_pct((trial(0), trial(1, [52])), trial(1, [52]), 1, OBJECTIVE) is None


def test_progress_tells_the_course_and_the_failures() -> None:
    broken = trial(3, failure=FailureKind.SERVER_CRASH, state=TrialState.INFEASIBLE)
    found = progress((trial(0, [50]), trial(1, [40]), trial(2, [60]), broken), BUDGET, OBJECTIVE, True)
    assert found.luck_pct is not None
    assert [failed.trial_number for failed in found.failures] == [3]
    assert list(found.course) == [40, 60]


def test_the_interval_of_the_eta_widens_with_what_launches_differ_by() -> None:
    even = [launch(50, trial=n) for n in range(4)]
    uneven = [n.model_copy(update={"ended_at": n.started_at + datetime.timedelta(seconds=s)})
              for n, s in zip(even, (5, 10, 15, 40), strict=True)]  # fmt: skip
    found = []
    for launches in (even, uneven):
        trials = [trial(n, [50]).model_copy(update={"launches": (one,)}) for n, one in enumerate(launches)]
        eta = eta_of(progress(trials, BUDGET, OBJECTIVE, True))
        assert eta is not None
        found.append(eta)
    assert found[0].low_s == found[0].mean_s == found[0].high_s
    assert found[1].low_s < found[1].mean_s < found[1].high_s
    assert eta_of(progress((), BUDGET, OBJECTIVE, True)) is None


@pytest.mark.parametrize(
    ("left_s", "words"), [(200, "in time"), (110, "may be late"), (50, "the deadline comes first")]
)
def test_a_deadline_is_held_against_the_interval(left_s: float, words: str) -> None:
    assert Eta(100, 80, 120).against(left_s) == words


def test_a_phase_is_expected_to_take_what_it_took_before() -> None:
    phases = PhaseTimes()
    for began, took in ((0, 10), (100, 30), (200, 20)):
        phases.enter("loading model", began)
        phases.enter("loading model", began + 1)  # told again: it goes on
        phases.enter("measuring", began + took)
        phases.leave(began + 90)
    phases.enter("loading model", 300)
    assert (phases.expected_s, phases.elapsed_s(307)) == (20, 7)
    phases.enter("stopping", 320)
    assert phases.expected_s is None
