"""Replay of real servers whose whole space was measured: the scoring, and the table itself."""

from __future__ import annotations

from itertools import product

import pytest

from sweeper.samplers.physics import Roles, SearchParameter, SearchSpace
from tests.bench.search.real import Replay, methods_of, replay, summary
from tests.bench.search.real_servers import (
    ALGORITHM,
    KIND,
    NONE,
    NUM_STEPS,
    Measured,
    RealServer,
    Start,
    key,
    llamacpp,
    sglang,
)

SIZES = (2, 3, 4, 6, 8, 12)


def server(drafting: float) -> RealServer:
    """24 ways to draft, `drafting` tok/s at best; 50 without."""
    when = {KIND: ("ngram",)}
    names = (SearchParameter("size_n", (1, 2, 3, 4), when=when), SearchParameter("size_m", SIZES, when=when))
    measured = {key({KIND: NONE}): Measured((Start(50.0),))}
    for size_n, size_m in product((1, 2, 3, 4), SIZES):
        speed = drafting - 2 * abs(size_n - 3) - abs(size_m - 4)
        measured[key({KIND: "ngram", "size_n": size_n, "size_m": size_m})] = Measured((Start(speed),))
    space = SearchSpace((SearchParameter(KIND, (NONE, "ngram")), *names))
    return RealServer("made up", space, {KIND: NONE}, measured)


@pytest.mark.parametrize("method", methods_of(server(80.0)))
def test_a_night_is_the_same_again_and_never_names_something_worse(method: str) -> None:
    first, again = (replay(server(80.0), method, seed=3, budget=12) for _ in range(2))
    assert first == again
    assert first.regret_pct[0] == pytest.approx(100 * 30 / 80)
    assert list(first.regret_pct) == sorted(first.regret_pct, reverse=True)


def test_where_drafting_does_not_pay_the_baseline_is_it() -> None:
    assert replay(server(40.0), "random", seed=0, budget=5).restarts_to(2) == 1


def test_what_specsweep_uses_tries_nothing_twice_and_ends_with_the_space() -> None:
    night = replay(server(80.0), "specsweep_tpe", seed=1, budget=60)
    assert len(night.regret_pct) == 25
    assert night.regret_pct[-1] == 0


def test_a_night_that_never_comes_close_is_said_so() -> None:
    nights = [Replay("random", (9.0,) * 20), Replay("random", (9.0, 1.0) + (0.0,) * 18)]
    assert nights[1].restarts_to(2) == 2
    assert summary(nights).endswith("| random | 2 | 2 | > 20 | 4.5 / 4.5 / 4.5 |")


def test_the_measured_table_is_whole() -> None:
    real = llamacpp()
    assert len(real.measured) == 1 + 3 * 7
    assert real.best == pytest.approx(80 / 2.19)
    assert real.of({KIND: NONE}).mean == pytest.approx(80 / 3.70)


def chains() -> RealServer:
    """Six chains of drafts, each right with probability 0.8; a step costs 10 ms and 1.5 more per draft."""
    steps = (1, 2, 3, 4, 5, 6)
    space = (
        SearchParameter(ALGORITHM, (NONE, "EAGLE3")),
        SearchParameter(NUM_STEPS, steps, ordered=True, when={ALGORITHM: ("EAGLE3",)}),
        SearchParameter("flag", (False, True)),
    )
    measured = {key({ALGORITHM: NONE, "flag": flag}): Measured((Start(100.0),)) for flag in (False, True)}
    for number, flag in product(steps, (False, True)):
        survival = [0.8**depth for depth in range(number + 1)]
        counts = [round(1000 * (one - two)) for one, two in zip(survival, [*survival[1:], 0.0], strict=True)]
        length, cost = sum(survival), (10 + 1.5 * number) * (1.1 if flag else 1.0)
        start = Start(1000 * length / cost, length, tuple(counts))
        measured[key({ALGORITHM: "EAGLE3", NUM_STEPS: number, "flag": flag})] = Measured((start,))
    roles = Roles((ALGORITHM,), NUM_STEPS, speculates=lambda config: config[ALGORITHM] != NONE)
    return RealServer("chains", SearchSpace(space), {ALGORITHM: NONE, "flag": False}, measured, roles)


def test_where_drafts_are_known_the_physics_needs_few_starts() -> None:
    nights = {
        method: [replay(chains(), method, seed, 10) for seed in range(3)] for method in ("random", "physics")
    }
    soon = {method: sum(night.restarts_to(2) for night in found) for method, found in nights.items()}
    assert soon["physics"] <= 3 * 5
    assert soon["physics"] < soon["random"]


def test_the_physics_finds_the_best_of_all_that_the_real_sglang_was_measured_with() -> None:
    """Also among n-grams, whose chains are told by their tokens alone."""
    night = replay(sglang(), "physics", seed=0)
    assert len(night.regret_pct) == len(sglang().measured)
    assert night.restarts_to(2) <= 6


def test_the_measured_table_of_sglang_is_whole() -> None:
    real = sglang()
    assert len(real.measured) == 1 + 6 + 5
    assert len(sglang(ngrams=False).measured) == 1 + 6
    assert real.of(real.baseline).starts[0].accept_length is None
    for where, found in real.measured.items():
        config = dict(where)
        if NUM_STEPS in config:
            for start in found.starts:
                steps = range(len(start.histogram))
                assert start.accept_length is not None
                assert 1 < start.accept_length <= int(config[NUM_STEPS]) + 1
                told = sum(n * count for n, count in zip(steps, start.histogram, strict=True)) / sum(
                    start.histogram
                )
                assert start.accept_length == pytest.approx(1 + told, rel=0.05)
