"""Ratios to a control: how sure one can be, and what the values say by which something was chosen."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sweeper.statistics.ratios import CHOOSING_WEIGHT, Evidence, Terms, evidence, ratios_to_control
from sweeper.statistics.stats import Group, pooled_variance, uneven_spreads

groups = st.lists(st.floats(1.0, 1e4), min_size=1, max_size=4).map(tuple)

befores = st.builds(
    Evidence,
    gap=st.floats(-0.1, 0.2),
    error=st.floats(0.001, 0.05),
    degrees=st.sampled_from([2, 30]),
    among=st.integers(1, 40),
    least=st.sampled_from([-math.inf, -0.4, -0.11]),
)


def drawn(rng: random.Random, level: float, count: int, spread: float = 0.015) -> Group:
    return tuple(math.exp(rng.gauss(math.log(level), spread)) for _ in range(count))


def test_one_group_is_compared_by_students_test() -> None:
    rng = random.Random(7)
    control, rival = drawn(rng, 50, 7), drawn(rng, 51, 5)
    ours = ratios_to_control((rival,), control)[0]
    theirs = stats.ttest_ind(np.log(rival), np.log(control), alternative="greater")
    assert ours.t == pytest.approx(theirs.statistic)
    assert ours.p == pytest.approx(theirs.pvalue)
    assert ours.low == pytest.approx(math.exp(theirs.confidence_interval(0.95).low))
    assert ours.high == pytest.approx(math.exp(2 * math.log(ours.value) - math.log(ours.low or 0)))


def test_of_several_each_may_use_its_share_of_the_error() -> None:
    """Bonferroni's correction is never looser than Dunnett's test, which knows that they share a control."""
    rng = random.Random(7)
    control, rivals = drawn(rng, 50, 7), tuple(drawn(rng, 51, 5) for _ in range(3))
    ours = ratios_to_control(rivals, control)
    logs = [np.log(rival) for rival in rivals]
    theirs = stats.dunnett(*logs, control=np.log(control), alternative="greater", rng=np.random.default_rng(0))
    bounds = np.exp(theirs.confidence_interval(0.95).low)
    assert [ratio.t for ratio in ours] == pytest.approx(list(theirs.statistic))
    for ratio, p, low in zip(ours, theirs.pvalue, bounds, strict=True):
        assert (ratio.p or 0) > p - 1e-4
        assert low - 0.005 < (ratio.low or 0) < low + 1e-6


def test_a_steady_drift_is_taken_out() -> None:
    hours = (tuple(float(h) for h in range(10)), (10.0, 11.0, 12.0))
    rng = random.Random(3)

    def at(level: float, hour: float) -> float:
        return level * math.exp(-0.02 * hour + rng.gauss(0, 0.001))

    control = tuple(at(50, hour) for hour in hours[0])
    rival = tuple(at(55, hour) for hour in hours[1])
    assert evidence((rival,), control)[0].gap < 0
    assert evidence((rival,), control, hours)[0].gap == pytest.approx(math.log(1.1), rel=0.02)


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


def test_the_greatest_of_many_equal_ones_is_no_surprise() -> None:
    alone, of_many = Evidence(0.03, 0.015, 60), Evidence(0.03, 0.015, 60, among=20)
    assert alone.p() == pytest.approx(stats.t.sf(2, 60))
    assert of_many.p() == pytest.approx(1 - (1 - alone.p()) ** 20)
    assert alone.p(0.03) == pytest.approx(0.5)
    assert Evidence(-9.0, 0.001, 60, among=20).p() == 1.0


def test_a_gap_without_which_nobody_would_have_been_chosen_is_judged_among_such_gaps() -> None:
    plain, chosen = Evidence(0.03, 0.015, 60), Evidence(0.03, 0.015, 60, least=0.015)
    assert chosen.p() == pytest.approx(stats.t.sf(2, 60) / stats.t.sf(1, 60))
    assert Evidence(0.03, 0.015, 60, least=0.03).p() == 1.0
    assert Evidence(0.03, 0.015, 60, least=-0.3).p() == pytest.approx(plain.p())
    assert plain.p(0.01) < chosen.p(0.01) < chosen.p(0.03)


def test_what_a_group_was_chosen_by_counts_a_little_for_it_and_against_it() -> None:
    rng = random.Random(7)
    control, rival = drawn(rng, 50, 5), drawn(rng, 50.9, 5)
    alone = ratios_to_control((rival,), control)[0]
    good, bad = (
        ratios_to_control((rival,), control, Terms(choosing=(Evidence(gap, 0.009, 40, 20),)))[0]
        for gap in (0.04, 0.0)
    )
    assert (good.value, good.high, good.t) == (alone.value, alone.high, alone.t)
    assert (bad.low or 0) < (alone.low or 0) < (good.low or 0)
    assert (bad.p or 0) > (alone.p or 0) > (good.p or 0)
    assert bad.enough > alone.enough > good.enough


def test_both_are_combined_by_their_weights() -> None:
    """The weighted sum of two normal numbers, each as rare as its p, is as rare as the p of both."""
    rng = random.Random(7)
    control, rival = drawn(rng, 50, 5), drawn(rng, 50.9, 5)
    alone, before = ratios_to_control((rival,), control)[0], Evidence(0.02, 0.009, 40, 20)
    both = ratios_to_control((rival,), control, Terms(choosing=(before,)))[0]
    rare = [stats.norm.isf(p) for p in (before.p(), alone.p) if p is not None]
    weights = [math.sqrt(CHOOSING_WEIGHT), math.sqrt(1 - CHOOSING_WEIGHT)]
    assert both.p == pytest.approx(stats.norm.sf(np.dot(weights, rare)))


@settings(deadline=None, max_examples=60)
@given(befores, st.sampled_from([1.0, 0.8, 0.2]))
def test_the_bound_lies_above_one_where_chance_is_ruled_out_and_only_there(before: Evidence, share: float) -> None:
    control, rival = (50.0, 50.5, 49.7, 50.2), (51.0, 50.2, 51.4, 50.9)
    found = ratios_to_control((rival,), control, Terms(shares=(share,), choosing=(before,)))[0]
    assert found.low is not None
    assert found.p is not None
    assert found.above_one == (found.p < 0.05)
    assert found.low < found.value


def test_enough_is_where_the_bound_reaches_one() -> None:
    """With a spread that is known well, a gap of just so many standard errors is just significant."""
    rng = random.Random(1)
    known = tuple((1.0, math.exp(rng.gauss(0, 0.01 * math.sqrt(2)))) for _ in range(600))
    control = (49.5, 50.0, 50.5)
    for before in (None, Evidence(0.02, 0.009, 40, 20), Evidence(-0.01, 0.009, 40, 20)):
        terms = Terms(shares=(0.8,), others=known, choosing=(before,))
        for step in range(-10, 40):
            level = math.exp(step / 1000)
            rival = (50 * level * 1.01, 50 * level, 50 * level / 1.01)
            found = ratios_to_control((rival,), control, terms)[0]
            assert found.t is not None
            if abs(found.t - found.enough) > 0.03:
                assert found.above_one == (found.t > found.enough)


def test_a_chosen_one_without_any_truth_wins_no_more_often_than_allowed() -> None:
    """Of twenty equal ones the best of four values each is launched five times more."""
    rng, wins, num_nights = np.random.default_rng(5), 0, 400
    for _ in range(num_nights):
        chosen_by = rng.normal(0, 0.015, (20, 4))
        best = tuple(np.exp(chosen_by[chosen_by.mean(axis=1).argmax()]))
        before = evidence((best,), tuple(np.exp(rng.normal(0, 0.015, 6))), among=20)[0]
        rival, control = (tuple(np.exp(rng.normal(0, 0.015, 5))) for _ in range(2))
        wins += ratios_to_control((rival,), control, Terms(choosing=(before,)))[0].above_one
    assert wins / num_nights < 0.05 + 2 * math.sqrt(0.05 * 0.95 / num_nights)
    assert wins > 0


@pytest.mark.parametrize("others", [(), (0.0,), (-0.05, -0.05, -0.1)])
def test_one_that_stood_out_without_any_truth_has_a_small_p_no_more_often_than_allowed(
    others: tuple[float, ...],
) -> None:
    """One is as fast as the control, by one value against three; it stands out where it leads by 2 % or more."""
    rng, rare, num_chosen = np.random.default_rng(6), 0, 0
    while num_chosen < 2000:
        value, base = rng.normal(0, 0.015), rng.normal(0, 0.015, 3)
        lead = min((value - rng.normal(other, 0.015) - 0.02 for other in others), default=math.inf)
        if lead > 0:
            num_chosen += 1
            found = evidence((_exp([value]),), _exp(base))[0]
            rare += replace(found, least=found.gap - lead * 4 / 3).p() < 0.1
    assert rare / num_chosen < 0.1 + 2.5 * math.sqrt(0.1 * 0.9 / num_chosen)


def _exp(logs: Iterable[float]) -> Group:
    return tuple(math.exp(value) for value in logs)


def test_without_a_gain_in_fresh_values_nothing_wins_however_good_it_was_when_it_was_chosen() -> None:
    rng = random.Random(7)
    control = drawn(rng, 50, 5)
    found = ratios_to_control((control,), control, Terms(choosing=(Evidence(0.5, 0.001, 40),)))[0]
    assert not found.above_one
