"""The statistics behind a verdict. Ratios are compared on the logarithmic scale, where noise is even."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
"""Every interval is simultaneous: all of one verdict's intervals hold together with this probability."""


@dataclass(frozen=True)
class Ratio:
    """A ratio of means with its interval. `low` and `high` are None when the spread is unknown."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def above_one(self) -> bool:
        """Whether the ratio is significantly greater than 1."""
        return self.low is not None and self.low > 1


def pairwise_ratios(groups: Sequence[Sequence[float]]) -> list[list[Ratio]]:
    """`result[i][j]` is the ratio of group i's mean to group j's, with Tukey's simultaneous interval.

    `groups` holds positive values, one group per configuration. The spread is pooled over all groups (how much
    a launch varies belongs to the host more than to a configuration), so that two launches each already say
    something. Without any repeated value there is no spread, and no interval.
    """
    logs = [[math.log(value) for value in group] for group in groups]
    means = [sum(group) / len(group) for group in logs]
    bare = [[Ratio(math.exp(a - b)) for b in means] for a in means]
    if len(groups) < 2 or min(len(group) for group in groups) < 2:
        return bare
    if all(math.isclose(min(group), max(group), abs_tol=1e-12) for group in logs):
        return [[Ratio(r.value, r.value, r.value) for r in row] for row in bare]
    import numpy as np
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = stats.tukey_hsd(*logs).confidence_interval(CONFIDENCE)
        low, high = np.atleast_2d(interval.low), np.atleast_2d(interval.high)
    indices = range(len(groups))
    return [
        [
            bare[i][j] if i == j else Ratio(bare[i][j].value, math.exp(low[i, j]), math.exp(high[i, j]))
            for j in indices
        ]
        for i in indices
    ]


def spread_pct(values: Sequence[float]) -> float | None:
    """(highest - lowest) / mean in percent; None for fewer than two values."""
    if len(values) < 2:
        return None
    return 100 * (max(values) - min(values)) / (sum(values) / len(values))


def t_quantile(probability: float, degrees: float) -> float:
    """The value that a t-distributed number stays below with `probability`; `degrees` of freedom are above 0."""
    from scipy import stats

    return float(stats.t.ppf(probability, degrees))


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The two-sided interval of the mean of `values`; None for fewer than two of them."""
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    half = t_quantile((1 + confidence) / 2, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - half, mean + half


def fisher_greater(found: int, of: int, other_found: int, of_others: int) -> float:
    """How likely `found` of `of` or more would be if both shares were equal: Fisher's exact test, one-sided."""
    import numpy as np
    from scipy import stats

    table = np.array([[found, of - found], [other_found, of_others - other_found]])
    return float(stats.fisher_exact(table, alternative="greater").pvalue)
