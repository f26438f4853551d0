"""A few whole sweeps on simulated servers; the bench `tests.bench.verdicts` runs hundreds."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter

import pytest

from sweeper.deciding.verdict import VerdictKind
from sweeper.records import Purpose
from tests.bench.nights import Night, World
from tests.bench.verdicts import BUDGET, FIVE, clear, null


def run(world: World, seed: int) -> tuple[VerdictKind, int | None, Counter[Purpose]]:
    night = Night(world, BUDGET, random.Random(seed), FIVE)
    verdict = night.run()
    return verdict.kind, verdict.advised, Counter(one.purpose for t in night.trials for one in t.launches)


def test_of_equal_ones_none_wins_though_the_best_single_launch_looks_faster() -> None:
    for seed in range(3):
        kind, _, made = run(null(random.Random(seed)), seed)
        assert kind is VerdictKind.NO_GAIN
        assert made[Purpose.RECHECK] > 10


def test_one_that_is_five_percent_faster_is_found_and_confirmed() -> None:
    for seed in range(3):
        kind, advised, made = run(World([1.0] * 9 + [1.05] + [1.0] * 10), seed)
        assert (kind, advised) == (VerdictKind.WINNER, 10)
        assert made[Purpose.CONFIRM] <= 15


def test_where_the_winner_is_clear_nothing_is_launched_twice_before_the_confirmation() -> None:
    world = clear(random.Random(1))
    kind, advised, made = run(world, 1)
    assert kind is VerdictKind.WINNER
    assert world.gains[(advised or 0) - 1] == 1.3
    assert made[Purpose.RECHECK] == 0
    assert made[Purpose.CONFIRM] <= 8


def test_a_finalist_that_crashes_whenever_it_is_to_be_confirmed_does_not_win() -> None:
    night = Night(World([1.3, 1.0, 1.0], crashing=1.0), BUDGET, random.Random(2), FIVE)
    assert night.run().kind is VerdictKind.NO_GAIN
    confirmed = [x for one in night.trials[1:] for x in one.launches if x.purpose is Purpose.CONFIRM]
    assert confirmed
    assert not any(launch.ok for launch in confirmed)


def test_heavy_tails_are_as_wide_and_reach_further() -> None:
    draws = {}
    for degrees in (0, 3):
        rng, world = random.Random(4), World([], tail_degrees=degrees)
        draws[degrees] = [100 * math.log(world.luck(rng)) for _ in range(20_000)]
    assert statistics.stdev(draws[0]) == pytest.approx(1.5, rel=0.03)
    assert statistics.stdev(draws[3]) == pytest.approx(1.5, rel=0.15)
    beyond = {degrees: sum(abs(value) > 6 for value in values) for degrees, values in draws.items()}
    assert beyond[3] > 20 * max(1, beyond[0])


def test_a_host_that_settles_has_lost_most_of_it_early() -> None:
    settling, steady = World([], drift_pct=-5.0, settling_hours=2.0), World([], drift_pct=-5.0)
    assert settling.host_speed(0) == steady.host_speed(0) == 1
    assert settling.host_speed(2) == pytest.approx(1 - 0.0316, abs=0.001)
    assert settling.host_speed(1000) == pytest.approx(steady.host_speed(10))
