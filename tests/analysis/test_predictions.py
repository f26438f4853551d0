"""What was predicted, beside what was measured."""

from __future__ import annotations

import pytest

from sweeper.errors import FailureKind
from sweeper.forecasts import Forecast, Span
from sweeper.records import TrialRecord, TrialState
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import failed, measured, new_night, ngram, plain_config, trial
from tests.analysis.studies import changed, report_of, section

pytestmark = pytest.mark.study


def foretold(of: TrialRecord, mean: float, low: float, high: float, p_start: float = 0.9) -> TrialRecord:
    """The trial with a forecast of its throughput."""
    forecast = Forecast(
        throughput=Span(mean=mean, low=low, high=high),
        accept_length=Span(mean=2.5, low=2, high=3),
        step_ms=Span(mean=30, low=25, high=35),
        p_start=p_start,
        gain_pct=0.1,
        remaining_pct=0.15,
        reason="largest expected gain",
    )
    return of.model_copy(update={"forecast": forecast})


def night() -> list[TrialRecord]:
    made = new_night()
    stopped = changed(measured(made, 30.0), estimated="stopped after 1 of 5 prompts")
    return [
        trial(0, plain_config(), [measured(made, 40.0)]),
        foretold(trial(1, ngram(3, 4), [measured(made, 50.0), measured(made, 70.0)]), 48.0, 45.0, 51.0),
        foretold(trial(2, ngram(3, 5), [measured(made, 60.0)]), 50.0, 45.0, 55.0),
        foretold(trial(3, ngram(3, 6), [stopped]), 50.0, 45.0, 55.0),
        foretold(
            trial(4, ngram(3, 7), [failed(made, FailureKind.OUT_OF_MEMORY)], TrialState.INFEASIBLE),
            50.0,
            45,
            55,
            0.4,
        ),
    ]


def test_predicted_and_measured_stand_side_by_side(store: StudyStore) -> None:
    shown = section(report_of(store, night()), "What was predicted")
    assert (
        "| 1 | ngram-simple n3 m4 | 48.0 (45.0 to 51.0) | 50.0 | +4.2 | 2.50 | 2.35 | 30.0 | 90 | largest" in shown
    )
    assert "| 3 | ngram-simple n3 m6 | 50.0 (45.0 to 55.0) | ≈ 30.0 | – |" in shown
    assert "| 4 | ngram-simple n3 m7 | 50.0 (45.0 to 55.0) | – | – | 2.50 | – | 30.0 | 40 |" in shown


def test_the_sums_count_first_launches_and_no_estimates(store: StudyStore) -> None:
    shown = section(report_of(store, night()), "What was predicted")
    assert "Half of the 2 measured values differ from it by less than 12.1 %; 1 of them lie" in shown
    assert "3 of 4 servers could be measured; 3.1 were expected to start." in shown
    assert "no untested configuration is expected to bring more than 0.15 %." in shown


def test_a_search_that_foretells_nothing_has_no_such_section(store: StudyStore) -> None:
    report = report_of(store, [trial(0, plain_config(), [measured(new_night(), 40.0)])])
    assert "What was predicted" not in report
