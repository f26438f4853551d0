"""Replay of published tables: which configuration would be named after one, two, three of a cell are measured?

The speed without speculation, where it was published, is known to all from the start and is not counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Protocol

from tests.bench.search.published import Cell, Measured, Shape
from tests.bench.search.tables import as_markdown

NUM_MEASURED = (1, 2, 3)
CLOSE = 0.02


class Chooser(Protocol):
    """Chooses what to measure next in a cell, and what to name."""

    def next(self, measured: Mapping[Shape, Measured]) -> Shape:
        """One of the cell's shapes that is not measured yet."""

    def name(self, measured: Mapping[Shape, Measured]) -> Shape:
        """The shape that it takes for the fastest, measured or not."""


MakeChooser = Callable[[Cell, int], Chooser]


@dataclass(frozen=True)
class Replay:
    """One cell, one method. shares: the named shape's throughput over the cell's best, by number measured."""

    table: str
    method: str
    shares: tuple[float, ...]


def replay(cell: Cell, method: str, make: MakeChooser, seed: int) -> Replay:
    """Measure three shapes of a cell, one after the other. Raises ValueError for one that cannot be measured."""
    chooser = make(cell, seed)
    measured: dict[Shape, Measured] = {}
    shares = []
    for _ in NUM_MEASURED:
        shape = chooser.next(measured)
        if shape in measured or shape not in cell.shapes:
            raise ValueError(f"{cell.name}: {shape} is not there, or measured already")
        measured[shape] = cell.shapes[shape]
        shares.append(cell.shapes[chooser.name(measured)].throughput / cell.best)
    return Replay(cell.table, method, tuple(shares))


def by_chance(cell: Cell) -> list[Replay]:
    """Every order in which three shapes can be measured, where the fastest measured one is named."""
    orders = permutations([found.throughput / cell.best for found in cell.shapes.values()], NUM_MEASURED[-1])
    return [Replay(cell.table, "random", tuple(max(o[:count]) for count in NUM_MEASURED)) for o in orders]


def fastest(measured: Mapping[Shape, Measured]) -> Shape:
    """The shape that measured best."""
    return max(measured, key=lambda shape: measured[shape].throughput)


def summary(replays: Iterable[Replay]) -> str:
    """Per table and method: how often the named shape is within 2 % of the cell's best, and the mean regret."""
    groups: dict[tuple[str, str], list[Replay]] = {}
    for found in replays:
        groups.setdefault((found.table, found.method), []).append(found)
    head = ("table", "method", "replays", "within 2 % after 1 / 2 / 3 measured", "regret % after 1 / 2 / 3")
    return as_markdown(head, (_row(*names, found) for names, found in groups.items()))


def _row(table: str, method: str, replays: Sequence[Replay]) -> list[str]:
    columns = list(zip(*(found.shares for found in replays), strict=True))
    within = (100 * statistics.mean(share >= 1 - CLOSE for share in column) for column in columns)
    regret = (100 * (1 - statistics.mean(column)) for column in columns)
    return [
        table,
        method,
        str(len(replays)),
        " / ".join(f"{share:.0f} %" for share in within),
        " / ".join(f"{mean:.1f}" for mean in regret),
    ]
