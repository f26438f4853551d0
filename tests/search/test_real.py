"""Replay of real servers whose whole space was measured: the scoring, and the table itself."""

from __future__ import annotations

from itertools import product

import pytest

from sweeper.samplers.physics import SearchParameter, SearchSpace
from tests.bench.search.real import (
    KIND,
    METHODS,
    NONE,
    Measured,
    RealServer,
    Replay,
    key,
    llamacpp,
    replay,
    summary,
)

SIZES = (2, 3, 4, 6, 8, 12)


def server(drafting: float) -> RealServer:
    """24 ways to draft, `drafting` tok/s at best; 50 without."""
    when = {KIND: ("ngram",)}
    names = (SearchParameter("size_n", (1, 2, 3, 4), when=when), SearchParameter("size_m", SIZES, when=when))
    measured = {key({KIND: NONE}): Measured((50.0,))}
    for size_n, size_m in product((1, 2, 3, 4), SIZES):
        speed = drafting - 2 * abs(size_n - 3) - abs(size_m - 4)
        measured[key({KIND: "ngram", "size_n": size_n, "size_m": size_m})] = Measured((speed,))
    return RealServer("made up", SearchSpace((SearchParameter(KIND, (NONE, "ngram")), *names)), measured)


@pytest.mark.parametrize("method", METHODS)
def test_a_night_is_the_same_again_and_never_names_something_worse(method: str) -> None:
    first, again = (replay(server(80.0), method, seed=3, budget=12) for _ in range(2))
    assert first == again
    assert first.regret_pct[0] == pytest.approx(100 * 30 / 80)
    assert list(first.regret_pct) == sorted(first.regret_pct, reverse=True)


def test_where_drafting_does_not_pay_the_baseline_is_it() -> None:
    assert replay(server(40.0), "random", seed=0, budget=5).restarts_to(2) == 1


def test_what_specsweep_uses_tries_nothing_twice_and_ends_with_the_space() -> None:
    night = replay(server(80.0), "specsweep", seed=1, budget=60)
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
