"""Where a value lies on a drawing, and which values are written beside an axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """A linear axis from `low` to `high`, drawn from pixel `start` to pixel `end` (`end` may be the smaller one).

    `ticks`: values and their texts.
    """

    label: str
    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[tuple[float, str]] = ()

    def at(self, value: float) -> float:
        """The pixel of a value; what lies outside is drawn at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def axis(
    label: str, values: Iterable[float], pixels: tuple[float, float], *, num_ticks: int = 5, whole: bool = False
) -> Axis:
    """An axis on which all `values` have room, with ticks at round numbers. No value at all: 0 to 1.

    `whole`: only whole numbers are written, where values are counted.
    """
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    low, high = low - margin if low > margin or low < 0 else 0.0, high + margin
    step = _step((high - low) / num_ticks)
    step = max(1.0, round(step)) if whole else step
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    digits += 1 if round(step, digits) != round(step, digits + 1) else 0
    first = math.ceil(low / step - 1e-9)
    ticks = [first * step + index * step for index in range(math.floor((high - first * step) / step + 1e-9) + 1)]
    return Axis(label, low, high, *pixels, [(tick, f"{tick:,.{digits}f}") for tick in ticks])


def _step(rough: float) -> float:
    """The round number that is nearest to `rough` by its ratio."""
    power = 10.0 ** math.floor(math.log10(rough))
    return min((step * power for step in _STEPS), key=lambda step: abs(math.log(step / rough)))


def time_unit(seconds: float) -> tuple[str, float]:
    """The unit in which so long a time is told, and its length in seconds."""
    if seconds >= 7200:
        return "hours", 3600.0
    return ("minutes", 60.0) if seconds >= 120 else ("seconds", 1.0)


def thinned(values: Sequence[T], most: int) -> Sequence[T]:
    """At most `most` of the values, evenly taken; first and last are among them."""
    if len(values) <= most:
        return values
    return [values[round(index * (len(values) - 1) / (most - 1))] for index in range(most)]
