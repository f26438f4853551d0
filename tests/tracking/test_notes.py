"""What a run says of itself: its description and its colour."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.forecasts import Forecast
from sweeper.records import TrialRecord
from sweeper.tracking.notes import BASELINE_COLOR, FASTER_COLOR, OTHER_COLOR, SLOWER_COLOR, color, note
from sweeper.tracking.page import charted_params, page_tags
from sweeper.tracking.view import TAG_COLOR, TAG_NOTE, run_view
from tests.tracking.studies import config, failed_trial, launch, spec_config, trial
from tests.tracking.test_page import unpacked, views

RATE = "output_throughput"
BASELINE = trial(0, config({}))


def did(rate: float, number: int = 1, **changes: Any) -> TrialRecord:
    settings = spec_config(number)
    return trial(number, settings, launches=(launch(number, settings, metrics={RATE: rate}),), **changes)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (BASELINE, BASELINE_COLOR),
        (did(88.0), FASTER_COLOR),
        (did(72.0), SLOWER_COLOR),
        (failed_trial(3, spec_config(3)), OTHER_COLOR),
    ],
)
def test_the_colour_says_on_which_side_of_the_baseline_a_trial_is(record: TrialRecord, expected: str) -> None:
    assert color(record, BASELINE, RATE) == expected


def test_a_smaller_latency_is_faster() -> None:
    quick, slow = (
        trial(n, spec_config(n), launches=(launch(n, spec_config(n), metrics={"tpot_ms": ms}),))
        for n, ms in ((1, 9.0), (2, 99.0))
    )
    assert color(quick, BASELINE, "tpot_ms") == FASTER_COLOR
    assert color(slow, BASELINE, "tpot_ms") == SLOWER_COLOR


def test_the_description_has_value_ratio_and_launches() -> None:
    assert note(did(88.0), BASELINE, RATE).startswith(
        "**88.0 tok/s**, 1.100 times the baseline's 80.0 (one launch, which alone is no proof)."
    )
    settings = spec_config(1)
    pair = tuple(launch(1, settings, n, metrics={RATE: 88.0 + n}) for n in range(2))
    assert "(2 launches, 1.1 % apart)" in note(trial(1, settings, launches=pair), BASELINE, RATE)
    assert "the configuration without speculative decoding" in note(BASELINE, BASELINE, RATE)


def test_the_description_says_why_a_trial_was_tried_and_what_its_files_are() -> None:
    forecast = Forecast(throughput=None, accept_length=None, step_ms=None, p_start=1.0, reason="best\nexpected")
    text = note(did(88.0, forecast=forecast), BASELINE, RATE)
    assert "Tried because: best expected" in text
    assert "`requests.json`" in text


def test_a_run_shows_both_and_a_failed_one_its_failure() -> None:
    assert run_view({}, did(88.0), BASELINE, RATE).tags[TAG_COLOR] == FASTER_COLOR
    assert "1.100 times" in run_view({}, did(88.0), BASELINE, RATE).tags[TAG_NOTE]
    assert "ran out of memory" in run_view({}, failed_trial(3, spec_config(3)), BASELINE, RATE).tags[TAG_NOTE]


def test_a_flag_that_was_asked_to_be_off_is_shown_as_off() -> None:
    settings = config({"spec_type": "x"})
    asked = config({"spec_type": "x", "disable_graphs": False})
    view = run_view({}, trial(1, settings, requested=asked), BASELINE, RATE)
    assert view.params["disable_graphs"] == "false"


def test_the_parallel_coordinates_have_only_what_every_measured_trial_has() -> None:
    graphs, more = config({"a": 1, "b": 1, "off": False}), config({"a": 2, "b": 1, "only": 5, "off": True})
    records = [BASELINE, trial(1, graphs, requested=graphs), trial(2, more), failed_trial(3, config({}))]
    found = [run_view({}, record, BASELINE, RATE) for record in records]
    assert charted_params(found) == ["a", "off"]
    assert charted_params(found[:1]) == []


def test_the_baselines_run_is_pinned() -> None:
    assert unpacked(page_tags(RATE, {}, None, views(3), "abc"))["runsPinned"] == ["abc"]
    assert unpacked(page_tags(RATE, {}, None, views(3)))["runsPinned"] == []
