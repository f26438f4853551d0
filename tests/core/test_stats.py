from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sweeper.stats import (
    Group,
    Terms,
    pooled_variance,
    ratios_to_control,
    spread_pct,
    t_quantile,
    trend,
    uneven_spreads,
)

groups = st.lists(st.floats(1.0, 1e4), min_size=1, max_size=4).map(tuple)


def drawn(rng: random.Random, level: float, count: int, spread: float = 0.015) -> Group:
    return tuple(math.exp(rng.gauss(math.log(level), spread)) for _ in range(count))


@pytest.mark.parametrize("num_groups", [1, 2, 3])
def test_without_a_trend_the_comparison_is_dunnetts(num_groups: int) -> None:
    rng = random.Random(7)
    control = drawn(rng, 50, 7)
    rivals = tuple(drawn(rng, 51, 5) for _ in range(num_groups))
    ours = ratios_to_control(rivals, control)
    theirs = stats.dunnett(
        *(np.log(rival) for rival in rivals),
        control=np.log(control),
        alternative="greater",
        rng=np.random.default_rng(0),
    )
    assert [ratio.t for ratio in ours] == pytest.approx(list(theirs.statistic))
    assert [ratio.p for ratio in ours] == pytest.approx(list(theirs.pvalue), rel=0.02, abs=5e-5)
    assert [ratio.low for ratio in ours] == pytest.approx(
        list(np.exp(theirs.confidence_interval(0.95).low)), rel=1e-4
    )


def test_a_steady_drift_is_taken_out_of_the_ratio() -> None:
    hours = (tuple(float(h) for h in range(10)), (10.0, 11.0, 12.0))
    rng = random.Random(3)

    def at(level: float, hour: float) -> float:
        return level * math.exp(-0.02 * hour + rng.gauss(0, 0.001))

    control = tuple(at(50, hour) for hour in hours[0])
    rival = tuple(at(55, hour) for hour in hours[1])
    assert ratios_to_control((rival,), control)[0].value < 1
    assert ratios_to_control((rival,), control, Terms(hours=hours))[0].value == pytest.approx(1.1, rel=0.005)


def test_a_launch_that_is_fast_now_and_slow_then_is_judged_by_its_own_spread() -> None:
    steady, control, shaky = (60.0, 60.1, 59.9, 60.0), (50.0, 50.1, 49.9, 50.0), (45.0, 82.7, 70.0)
    assert uneven_spreads((steady, control, shaky))
    sure, unsure = ratios_to_control((steady, shaky), control)
    assert sure.above_one
    assert not unsure.above_one


@settings(deadline=None, max_examples=40)
@given(st.lists(groups, min_size=1, max_size=3), groups)
def test_every_ratio_lies_inside_its_interval(rivals: list[Group], control: Group) -> None:
    for rival, ratio in zip(rivals, ratios_to_control(tuple(rivals), control), strict=True):
        assert ratio.value == pytest.approx(math.exp(np.mean(np.log(rival)) - np.mean(np.log(control))), rel=1e-6)
        if ratio.low is not None and ratio.high is not None:
            assert ratio.low <= ratio.value * (1 + 1e-9)
            assert ratio.high >= ratio.value * (1 - 1e-9)


def test_single_values_have_a_ratio_and_no_interval() -> None:
    ratio = ratios_to_control(((4.0,),), (2.0,))[0]
    assert ratio.value == pytest.approx(2.0)
    assert (ratio.low, ratio.high, ratio.p) == (None, None, None)
    assert ratios_to_control((), (2.0,)) == ()


def test_identical_repeats_give_an_interval_without_width() -> None:
    ratio = ratios_to_control(((2.0, 2.0),), (1.0, 1.0))[0]
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2.0, 2.0, 2.0))
    assert ratio.above_one
    assert not ratios_to_control(((2.0, 2.0),), (2.0, 2.0))[0].above_one


def test_a_trend_has_a_slope_and_how_likely_noise_is() -> None:
    found = trend([0, 1, 2, 3], [0.0, 1.1, 1.9, 3.0])
    assert found is not None
    assert found.slope == pytest.approx(0.98)
    assert found.p < 0.01
    assert trend([0, 1], [0, 1]) is None
    assert trend([1, 1, 1], [0, 1, 2]) is None
    level = trend([0, 1, 2], [5, 5, 5])
    assert level is not None
    assert level.p == 1


def test_a_pooled_variance_ignores_that_means_differ() -> None:
    assert pooled_variance([[1, 3], [11, 13], [7]]) == (2.0, 2)
    assert pooled_variance([[1], []]) == (0.0, 0)


def test_spread_of_one_value_is_unknown_not_zero() -> None:
    assert spread_pct([5.0]) is None
    assert spread_pct([9.0, 11.0]) == pytest.approx(20)


def test_quantiles_are_students() -> None:
    assert t_quantile(0.975, 3) == pytest.approx(3.182, abs=1e-3)


def test_half_the_error_asks_for_more() -> None:
    rng = random.Random(5)
    control, rival = drawn(rng, 50, 8), drawn(rng, 51, 5)
    usual = ratios_to_control((rival,), control)[0]
    strict = ratios_to_control((rival,), control, Terms(error=0.025))[0]
    assert (strict.low or 0) < (usual.low or 0)
    assert strict.value == usual.value


def test_the_spread_of_others_counts_and_their_means_do_not() -> None:
    control, rival = (49.0, 50.0, 51.0), (52.0, 53.0, 54.0)
    alone = ratios_to_control((rival,), control)[0]
    beside = ratios_to_control((rival,), control, Terms(others=((10.0, 10.2), (90.0, 91.8), (30.0, 30.6))))[0]
    variance = (4 * pooled(control, rival) + 3 * pooled((10.0, 10.2))) / 7
    assert beside.value == alone.value
    assert beside.t == pytest.approx(math.log(alone.value) / math.sqrt(variance * (1 / 3 + 1 / 3)), rel=1e-3)


def pooled(*groups: tuple[float, ...]) -> float:
    return pooled_variance([[math.log(value) for value in group] for group in groups])[0]


def test_others_that_vary_far_more_than_the_compared_are_left_out() -> None:
    control, rival = (49.9, 50.0, 50.1, 50.0), (51.0, 51.1, 50.9, 51.0)
    wild = tuple((20.0 + n, 60.0 - n) for n in range(4))
    assert ratios_to_control((rival,), control, Terms(others=wild)) == ratios_to_control((rival,), control)


def test_whoever_gets_more_of_the_allowed_error_is_judged_less_strictly_and_the_others_more() -> None:
    rng = random.Random(5)
    control, rivals = drawn(rng, 50, 8), (drawn(rng, 51, 5), drawn(rng, 51, 5))
    even = ratios_to_control(rivals, control)
    leader, other = ratios_to_control(rivals, control, Terms(shares=(0.8, 0.2)))
    assert (leader.low or 0) > (even[0].low or 0)
    assert (other.low or 0) < (even[1].low or 0)
    assert (leader.value, leader.t) == pytest.approx((even[0].value, even[0].t))
