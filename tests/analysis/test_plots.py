"""Drawings: values lie where they should, nothing is lost, and what they say in words is true."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.blocks import Figure
from analysis.plots.acceptance import acceptance, points_of
from analysis.plots.chart import MAX_DOTS, SHAPES, Dot
from analysis.plots.drift import drift
from analysis.plots.forest import Frame, Row, forest
from analysis.plots.intervals import MAX_ROWS, intervals, measured_intervals
from analysis.plots.night import night, spent
from analysis.plots.progress import events_of, progress
from analysis.plots.scales import axis, thinned, time_unit
from analysis.reading import Reading, reading_of
from sweeper.errors import FailureKind
from sweeper.records import LaunchRecord, Purpose
from tests.analysis.builders import failed, measured, new_night, ngram, plain_config, simplicity, trial, won_night
from tests.analysis.large import large_night, stored
from tests.analysis.studies import changed, later


def reading(num_trials: int = 40) -> Reading:
    return reading_of(stored(large_night(num_trials)), simplicity)


def dots(figure: Figure) -> int:
    return len(re.findall(r'class="dot', figure.svg))


@given(st.lists(st.floats(-1e6, 1e6), max_size=20), st.booleans())
def test_an_axis_has_room_for_all_values_and_round_ticks_within(values: list[float], whole: bool) -> None:
    found = axis("x", values, (50.0, 450.0), whole=whole)
    assert all(found.low <= value <= found.high for value in values)
    assert all(50 <= found.at(value) <= 450 for value in values)
    assert all(found.low - 1e-6 <= tick <= found.high + 1e-6 for tick, _ in found.ticks)
    assert len({text for _, text in found.ticks}) == len(found.ticks) <= 12
    if whole:
        assert all("." not in text for _, text in found.ticks)


def test_ticks_read_as_a_person_would_write_them() -> None:
    assert [text for _, text in axis("x", [61.2, 118.9], (0, 100)).ticks] == [
        "60",
        "70",
        "80",
        "90",
        "100",
        "110",
        "120",
    ]
    assert [text for _, text in axis("x", [1.0, 3.1], (0, 100)).ticks] == ["1.0", "1.5", "2.0", "2.5", "3.0"]


def test_an_axis_may_run_upwards() -> None:
    up = axis("y", [0.0, 10.0], (200.0, 20.0))
    assert up.at(10) < up.at(0)


@given(st.lists(st.integers(), min_size=1, max_size=300), st.integers(2, 50))
def test_of_many_the_first_and_last_are_kept(values: list[int], most: int) -> None:
    kept = thinned(values, most)
    assert len(kept) == min(len(values), most)
    assert (kept[0], kept[-1]) == (values[0], values[-1])


def test_times_are_told_in_units_of_their_size() -> None:
    assert [time_unit(seconds)[0] for seconds in (30, 600, 8000)] == ["seconds", "minutes", "hours"]


def test_symbols_differ() -> None:
    assert len({Dot(5, 5, shape=shape).path for shape in SHAPES}) == len(SHAPES)


def test_a_row_lies_between_the_ends_of_its_whisker_and_hostile_names_stay_text() -> None:
    chart = forest([Row("<b>&", 2.0, 1.0, 3.0, hint="<i>")], Frame("k", "<t>", "<d>", "tok/s"), 1.5)
    (x1, _), (x2, _) = chart.lines[1].points
    assert x1 < chart.dots[0].x < x2
    assert "&lt;b&gt;&amp;" in chart.svg
    assert not re.search(r"<(b|i|t|d)>", chart.svg)


def test_every_measured_configuration_has_a_dot_and_the_best_have_names() -> None:
    found = reading(60)
    best, order = intervals(found)
    num = len(measured_intervals(found))
    assert num > MAX_ROWS + 1
    assert dots(order) == num
    assert MAX_ROWS <= dots(best) <= MAX_ROWS + 1
    assert ">0 baseline<" in best.svg


def test_more_launches_make_an_interval_narrower() -> None:
    widths = {len(i.trial.measured): i.high / i.low for i in measured_intervals(reading())}
    assert widths[3] < widths[1]


def test_equal_step_times_are_lines_through_accept_length_over_step_time() -> None:
    figure = acceptance(reading())[0]
    assert re.search(r">\d+ ms<", figure.svg)
    for point in points_of(reading()):
        assert point.throughput == pytest.approx(1000 * point.accept_length / point.step_ms)


def test_drafters_have_colours_and_steps_have_symbols() -> None:
    figure = acceptance(reading())[0]
    words = [words for _, words in figure.legend]
    assert "EAGLE3 kimi-k2.5-eagle3" in words
    assert "EAGLE3 other-eagle3" in words
    assert "5 steps" in words
    assert "baseline" in words


def test_the_break_even_is_the_baseline_times_the_step_time() -> None:
    found = reading()
    best = max(points_of(found), key=lambda point: point.throughput)
    base = found.by_number[0].mean("output_throughput")
    assert base is not None
    assert f"an accept_len of {base * best.step_ms / 1000:.2f} equals the baseline" in acceptance(found)[0].words


def test_without_accept_lengths_there_is_no_such_drawing() -> None:
    bare = [changed(measured(new_night(), 40.0, drafted=False)) for _ in range(2)]
    trials = [trial(0, plain_config(), bare[:1]), trial(1, ngram(3, 4), bare[1:])]
    assert acceptance(reading_of(stored(trials), simplicity)) == []


def test_the_best_so_far_never_falls_and_estimates_and_failures_never_raise_it() -> None:
    night_ = new_night()
    launches = [
        measured(night_, 40.0, Purpose.BASELINE),
        changed(measured(night_, 99.0), estimated="stopped"),
        failed(night_, FailureKind.OUT_OF_MEMORY),
        measured(night_, 50.0),
        measured(night_, 45.0),
    ]
    configs = [plain_config(), *(ngram(3, n) for n in range(2, 6))]
    trials = [trial(n, config, [launch]) for n, (config, launch) in enumerate(zip(configs, launches, strict=True))]
    events = events_of(reading_of(stored(trials), simplicity))
    assert [event.best for event in events] == [40.0, 40.0, 40.0, 50.0, 50.0]
    assert [event.kind for event in events] == ["base", "muted", "failed", "k0", "k0"]
    assert all(dots(figure) == 5 for figure in progress(reading_of(stored(trials), simplicity)))


def test_the_night_adds_up_to_its_length() -> None:
    found = reading_of(stored(won_night()), simplicity)
    assert found.wall_clock_s is not None
    parts = spent(found.launches, found.wall_clock_s)
    assert sum(parts.values()) == pytest.approx(found.wall_clock_s)
    assert parts["failed launches"] == pytest.approx(3 * 34.0)
    assert parts["measuring"] == pytest.approx(9 * 30.0)
    assert "failed launches 22 %" in night(found)[0].words


def test_a_host_that_drifts_is_drawn_with_its_line_and_slowed_gpus_are_marked() -> None:
    night_ = new_night()
    launches: list[LaunchRecord] = []
    for step in range(6):
        launch = measured(night_, 40.0 - step + 0.01 * (step % 2), Purpose.CONTROL if step else Purpose.BASELINE)
        launches.append(later(launch) if step > 2 else launch)
    window = launches[5].gpu.model_copy(update={"throttled": {"hw_thermal_slowdown": 0.5, "sw_power_cap": 1.0}})
    launches[5] = changed(launches[5], gpu=window)
    trials = [trial(0, plain_config(), launches), trial(1, ngram(3, 4), [measured(night_, 50.0)])]
    figure = drift(reading_of(stored(trials), simplicity))[0]
    assert "slower by" in figure.words
    assert "In 1 of these launches a GPU was slowed down." in figure.words
    assert 'class="line best"' in figure.svg
    assert figure.svg.count('class="dot failed') == 1


def test_very_many_are_thinned() -> None:
    night_ = new_night()
    base, one = trial(0, plain_config(), [measured(night_, 40.0)]), trial(1, ngram(3, 4), [measured(night_, 50.0)])
    many = [one.model_copy(update={"number": n}) for n in range(1, MAX_DOTS + 500)]
    figure = intervals(reading_of(stored([base, *many]), simplicity))[1]
    assert dots(figure) == MAX_DOTS
