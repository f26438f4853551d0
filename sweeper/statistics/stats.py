"""Spreads, trends and quantiles. What they say of ratios: ratios.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

CONFIDENCE = 0.95
"""How sure one must be before something is called better. Of several comparisons all hold together."""

UNEVEN = 0.01
"""Spreads are not pooled when chance would show such a difference between them this rarely."""

_TINY = 1e-20
"""Keeps a perfect line from dividing by 0."""

Group = tuple[float, ...]


@dataclass(frozen=True)
class Trend:
    """A straight line through values over time. `p`: how often noise alone would give such a slope, or more."""

    slope: float
    intercept: float
    p: float


@lru_cache(maxsize=1024)
def uneven_spreads(groups: tuple[Group, ...]) -> bool:
    """Whether some of the groups vary significantly more than others: Bartlett's test."""
    from scipy import stats

    logs = [[math.log(value) for value in group] for group in groups if len(group) > 1]
    if len(logs) < 2 or min(max(group) - min(group) for group in logs) < 1e-9:
        return False  # a clock too coarse to show a spread
    return float(stats.bartlett(*logs).pvalue) < UNEVEN


def trend(hours: Sequence[float], values: Sequence[float]) -> Trend | None:
    """The line through `values` over `hours`; None for fewer than three, or if all are of the same moment.

    As scipy.stats.linregress, without loading scipy.stats, which takes longer than `specsweep status` may.
    """
    if len(values) < 3 or max(hours) - min(hours) <= 0:
        return None
    if max(values) - min(values) <= 0:
        return Trend(0.0, values[0], 1.0)
    import numpy as np
    from scipy import special

    x_squares, both, _, y_squares = np.cov(hours, values, bias=True).flat
    r = min(1.0, max(-1.0, both / math.sqrt(x_squares * y_squares)))
    slope, degrees = both / x_squares, len(values) - 2
    t = r * math.sqrt(degrees / ((1.0 - r + _TINY) * (1.0 + r + _TINY)))
    p = 2 * special.stdtr(degrees, -abs(t))
    return Trend(float(slope), float(np.mean(values) - slope * np.mean(hours)), float(p))


def pooled_variance(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """The variance within groups, whatever their means, and its degrees of freedom; (0, 0) without any."""
    repeated = [group for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in repeated)
    if not degrees:
        return 0.0, 0
    means = [math.fsum(group) / len(group) for group in repeated]
    squares = (sum((value - mean) ** 2 for value in group) for group, mean in zip(repeated, means, strict=True))
    return sum(squares) / degrees, degrees


def spread_pct(values: Sequence[float]) -> float | None:
    """(highest - lowest) / mean in percent; None for fewer than two values."""
    if len(values) < 2:
        return None
    return 100 * (max(values) - min(values)) / (sum(values) / len(values))


@lru_cache(maxsize=1024)
def t_quantile(probability: float, degrees: float) -> float:
    """The value that a t-distributed number stays below with `probability`; `degrees` of freedom are above 0."""
    from scipy import special

    return float(special.stdtrit(degrees, probability))


def f_above(ratio: float, degrees: float, degrees_below: float) -> float:
    """How often the ratio of two equal variances is this large, or larger: the F distribution's upper tail."""
    from scipy import stats

    return float(stats.f.sf(ratio, degrees, degrees_below))


def fisher_greater(found: int, of: int, other_found: int, of_others: int) -> float:
    """How likely `found` of `of` or more would be if both shares were equal: Fisher's exact test, one-sided."""
    import numpy as np
    from scipy import stats

    table = np.array([[found, of - found], [other_found, of_others - other_found]])
    return float(stats.fisher_exact(table, alternative="greater").pvalue)


def exp(logarithm: float) -> float:
    """The number of that logarithm; the greatest one for a logarithm that no number has.

    Bounds of two values that have nothing to do with each other lie beyond all numbers.
    """
    return math.exp(min(logarithm, 709.0))
