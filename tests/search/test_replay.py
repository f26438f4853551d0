"""Replay of published tables: the scoring, and the tables themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from tests.bench.search.choosers import CHOOSERS
from tests.bench.search.published import Cell, Measured, Shape, cells
from tests.bench.search.replay import by_chance, fastest, replay, summary

CELL = Cell(
    "table",
    "four chains",
    {(s, 1, s + 1): Measured(tok_s, 1 + s / 2) for s, tok_s in ((1, 100.0), (2, 120.0), (3, 180.0), (5, 200.0))},
    baseline=90.0,
)


class Knowing:
    """A chooser that knows the best and names it."""

    def next(self, measured: Mapping[Shape, Measured]) -> Shape:
        return next(shape for shape in CELL.shapes if shape not in measured)

    def name(self, measured: Mapping[Shape, Measured]) -> Shape:
        return fastest(CELL.shapes)


class Stubborn(Knowing):
    """A chooser that measures the same again."""

    def next(self, measured: Mapping[Shape, Measured]) -> Shape:
        return next(iter(CELL.shapes))


def test_a_perfect_chooser_scores_everything() -> None:
    found = replay(CELL, "knowing", lambda _cell, _seed: Knowing(), seed=0)
    assert found.shares == pytest.approx((1, 1, 1))
    assert "100 % / 100 % / 100 % | 0.0 / 0.0 / 0.0" in summary([found])


def test_chance_finds_one_of_four_as_often_as_it_must() -> None:
    text = summary(by_chance(CELL))
    assert "25 % / 50 % / 75 %" in text
    assert text.endswith("| 25.0 / 10.0 / 2.5 |")


def test_what_cannot_be_measured_is_an_error() -> None:
    with pytest.raises(ValueError, match="measured already"):
        replay(CELL, "stubborn", lambda _cell, _seed: Stubborn(), seed=0)


@pytest.mark.parametrize("name", CHOOSERS)
def test_samplers_choose_what_is_there_and_choose_the_same_again(name: str) -> None:
    first, again = (replay(CELL, name, CHOOSERS[name], seed=3) for _ in range(2))
    assert first == again
    assert all(0 < share <= 1 for share in first.shares)


def test_the_published_tables_are_read() -> None:
    found = cells()
    assert Counter(cell.table for cell in found) == {"specbundle": 88, "autospec": 14, "specforge": 1}
    kimi = next(cell for cell in found if cell.name.startswith("Kimi-K2-Instruct, gsm8k"))
    assert kimi.shapes[7, 1, 8].throughput == pytest.approx(kimi.best)
    assert kimi.best == pytest.approx(544.166, abs=0.001)
    assert kimi.baseline == pytest.approx(337.924, abs=0.001)
