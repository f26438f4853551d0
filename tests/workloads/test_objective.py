"""The objective: one metric, or a weighted geometric mean whose ratios do not depend on anybody's scale."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sweeper.objective import SCORE, ObjectiveSpec, Term

POSITIVE = st.floats(1e-3, 1e6)
WEIGHT = st.floats(0.01, 100)


def objective(*terms: tuple[str, str, float]) -> ObjectiveSpec:
    return ObjectiveSpec(terms=tuple(Term(workload=w, metric=m, weight=x) for w, m, x in terms))


TWO = objective(("first", "output_throughput", 2), ("busy", "output_throughput", 1))


def numbers(first: float, busy: float) -> dict[str, dict[str, float]]:
    return {"first": {"output_throughput": first}, "busy": {"output_throughput": busy}}


def combined(first: float, busy: float, spec: ObjectiveSpec = TWO) -> float:
    value = spec.value(numbers(first, busy))
    assert value is not None
    return value


def test_one_metric_is_its_own_value_whatever_its_weight() -> None:
    spec = objective(("first", "output_throughput", 7))
    assert spec.value(numbers(81.7, 1)) == 81.7
    assert spec.metric("first") == "output_throughput"


def test_one_metric_of_another_workload_is_the_score() -> None:
    spec = objective(("busy", "output_throughput", 1))
    assert spec.metric("first") == SCORE
    assert spec.value(numbers(81.7, 900.5)) == 900.5


def test_a_combination_is_the_score() -> None:
    assert TWO.metric("first") == SCORE
    assert combined(8, 1) == pytest.approx(4)


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE, WEIGHT, WEIGHT)
def test_the_ratio_of_two_configurations_is_the_weighted_mean_of_their_ratios(
    a: float, b: float, c: float, d: float, w: float, x: float
) -> None:
    spec = objective(("first", "output_throughput", w), ("busy", "output_throughput", x))
    ratio = math.log(combined(a, b, spec) / combined(c, d, spec))
    assert ratio == pytest.approx((w * math.log(a / c) + x * math.log(b / d)) / (w + x), abs=1e-9)


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE, st.floats(1e-3, 1e3))
def test_the_unit_of_one_workload_changes_no_ratio(a: float, b: float, c: float, d: float, unit: float) -> None:
    before = combined(a, b) / combined(c, d)
    assert combined(a, b * unit) / combined(c, d * unit) == pytest.approx(before)


@given(POSITIVE, POSITIVE, WEIGHT)
def test_weights_count_relative_to_one_another(a: float, b: float, times: float) -> None:
    heavier = objective(("first", "output_throughput", 2 * times), ("busy", "output_throughput", times))
    assert combined(a, b, heavier) == pytest.approx(combined(a, b))


@given(POSITIVE, POSITIVE)
def test_the_value_lies_between_its_parts(a: float, b: float) -> None:
    assert min(a, b) * (1 - 1e-9) <= combined(a, b) <= max(a, b) * (1 + 1e-9)


@pytest.mark.parametrize("metrics", [{}, {"first": {"output_throughput": 5.0}}, numbers(5, 0)])
def test_without_one_of_its_parts_there_is_no_value(metrics: dict[str, dict[str, float]]) -> None:
    assert TWO.value(metrics) is None


def test_it_is_shown_as_it_is_written() -> None:
    assert TWO.text("first") == "output_throughput x 2, busy.output_throughput x 1"
    assert objective(("busy", "output_throughput", 1)).text("first") == "busy.output_throughput"
    assert objective(("first", "decode_throughput", 3)).text("first") == "decode_throughput"


@pytest.mark.parametrize("weight", [0, -1, math.inf, math.nan])
def test_a_weight_is_a_number_above_zero(weight: float) -> None:
    with pytest.raises(ValidationError):
        objective(("first", "output_throughput", weight))


def test_a_metric_is_named_once() -> None:
    with pytest.raises(ValidationError, match="appears again"):
        objective(("first", "output_throughput", 1), ("first", "output_throughput", 2))
