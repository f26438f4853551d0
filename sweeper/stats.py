"""The statistics behind a verdict. Ratios are compared on the logarithmic scale, where noise is even."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95
"""How sure one must be before something is called better. Of several comparisons all hold together."""

UNEVEN = 0.01
"""Spreads are not pooled when chance would show such a difference between them this rarely."""

FOREIGN = 0.1
"""The spread of others is not used when chance would make it differ this much, or more, this rarely."""

_SEED = 0
"""The integral behind several comparisons is drawn at random points: the same ones each time."""

Group = tuple[float, ...]


@dataclass(frozen=True)
class Ratio:
    """A ratio of means. What needs a spread is None when the spread is unknown.

    `low` and `high`: each alone holds with 95 % confidence, one-sided and together with the same bound of all
    other ratios of the comparison; both hold with 90 %. `p`: how often a ratio this high would be seen if in truth
    none were above 1. `t`: the logarithm over its standard error.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    t: float | None = None

    @property
    def above_one(self) -> bool:
        """Whether the ratio is significantly greater than 1."""
        return self.low is not None and self.low > 1


@dataclass(frozen=True)
class Trend:
    """A straight line through values over time. `p`: how often noise alone would give such a slope, or more."""

    slope: float
    intercept: float
    p: float


@dataclass(frozen=True)
class Terms:
    """How groups are compared with their control, where Dunnett's comparison is not enough.

    `hours`: when each value was measured, the control's first. With them a steady drift that all share is
    estimated along with the means, and taken out (analysis of covariance), so that earlier values of the control
    can be used. `shares`: how the allowed `error` is divided among the groups, equally if not said. `others`: of
    these groups only the spread is used.
    """

    hours: tuple[Group, ...] = ()
    shares: Group = ()
    error: float = 1 - CONFIDENCE
    others: tuple[Group, ...] = ()


def ratios_to_control(groups: tuple[Group, ...], control: Group, terms: Terms | None = None) -> tuple[Ratio, ...]:
    """The ratio of each group's mean to the control's: Dunnett's one-sided comparison of several with one.

    Groups hold positive values. The spread is pooled over all of them: it belongs to the host more than to a
    configuration. Where spreads are uneven (a server that is fast after one start and slow after the next), each
    pair is compared for itself: Welch's test. Without `terms` this is scipy.stats.dunnett, which knows none.
    """
    terms = terms or Terms()
    errors = tuple(terms.error * share for share in terms.shares or tuple(1 / len(groups) for _ in groups))
    if uneven_spreads((control, *groups)):
        return _welch(groups, control, errors)
    return _ratios(groups, control, terms.hours, errors, terms.others)


@lru_cache(maxsize=1024)
def uneven_spreads(groups: tuple[Group, ...]) -> bool:
    """Whether some of the groups vary significantly more than others: Bartlett's test."""
    from scipy import stats

    logs = [[math.log(value) for value in group] for group in groups if len(group) > 1]
    if len(logs) < 2 or min(max(group) - min(group) for group in logs) < 1e-9:
        return False  # a clock too coarse to show a spread
    return float(stats.bartlett(*logs).pvalue) < UNEVEN


def _welch(groups: tuple[Group, ...], control: Group, errors: Group) -> tuple[Ratio, ...]:
    """Each group against the control, with the spread of these two; Bonferroni allows for their number."""
    from scipy import stats

    found = []
    theirs = [math.log(value) for value in control]
    for group, error in zip(groups, errors, strict=True):
        logs = [math.log(value) for value in group]
        gap = statistics.fmean(logs) - statistics.fmean(theirs)
        test = stats.ttest_ind(logs, theirs, equal_var=False, alternative="greater") if len(group) > 1 else None
        if test is None or len(control) < 2:
            found.append(Ratio(math.exp(gap)))
            continue
        low = float(test.confidence_interval(1 - error).low)
        p = min(1.0, float(test.pvalue) * sum(errors) / error)
        found.append(Ratio(math.exp(gap), math.exp(low), math.exp(2 * gap - low), p, float(test.statistic)))
    return tuple(found)


@lru_cache(maxsize=1024)  # what comes next is asked for after each launch, from the same values
def _ratios(
    groups: tuple[Group, ...],
    control: Group,
    hours: tuple[Group, ...],
    allowed: Group,
    others: tuple[Group, ...],
) -> tuple[Ratio, ...]:
    import numpy as np
    from scipy import linalg, stats

    if not groups:
        return ()
    logs, design = _model((control, *groups), hours)
    means, _, rank, _ = linalg.lstsq(design, logs)
    own = slice(1, len(groups) + 1)
    values = [float(mean) for mean in means[own]]
    degrees = len(logs) - int(rank)
    if degrees < 1 or rank < design.shape[1]:
        return tuple(Ratio(math.exp(value)) for value in values)
    variance = float(np.sum((logs - design @ means) ** 2)) / degrees
    variance, degrees = _with_others(variance, degrees, others)
    if variance < 1e-20:
        return tuple(_exact(value) for value in values)
    covariance = variance * linalg.inv(design.T @ design)[own, own]
    errors = [float(error) for error in np.sqrt(np.diag(covariance))]
    joint = _Joint(
        tuple(map(tuple, (covariance / np.outer(errors, errors)).tolist())),
        degrees,
        tuple(one / sum(allowed) for one in allowed),
    )
    level = joint.level(sum(allowed))
    found = []
    for value, error, share in zip(values, errors, joint.shares, strict=True):
        reach = t_quantile(1 - share * level, degrees) * error
        p = joint.error(float(stats.t.sf(value / error, degrees)) / share)
        found.append(Ratio(math.exp(value), math.exp(value - reach), math.exp(value + reach), p, value / error))
    return tuple(found)


def _model(
    members: tuple[Group, ...], hours: tuple[Group, ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logarithms, and the design: the first member's mean, what the others differ by, and the trend."""
    import numpy as np

    logs = np.log(np.concatenate([np.asarray(member) for member in members]))
    sizes = [len(member) for member in members]
    columns = [np.ones(len(logs))]
    columns += [np.repeat([float(i == j) for j in range(len(members))], sizes) for i in range(1, len(members))]
    if hours:
        when = np.concatenate([np.asarray(member) for member in hours])
        columns.append(when - when.mean())
    return logs, np.column_stack(columns)


def _with_others(variance: float, degrees: int, others: tuple[Group, ...]) -> tuple[float, int]:
    """The variance pooled with that of others, and its degrees of freedom, unless the two differ (F test)."""
    from scipy import stats

    theirs, more = pooled_variance([[math.log(value) for value in other] for other in others])
    if not more or theirs <= 0 or variance <= 0:
        return variance, degrees
    above = float(stats.f.sf(variance / theirs, degrees, more))
    if 2 * min(above, 1 - above) < FOREIGN:
        return variance, degrees
    return (variance * degrees + theirs * more) / (degrees + more), degrees + more


def _exact(value: float) -> Ratio:
    """Of values that never vary: as sure as can be."""
    ratio = math.exp(value)
    above = ratio > 1 + 1e-9
    return Ratio(ratio, ratio, ratio, 0.0 if above else 1.0, math.inf if above else -math.inf)


@dataclass(frozen=True)
class _Joint:
    """Several correlated t values of comparisons in none of which there is a difference.

    At a level each of them is allowed to exceed what a single one does with probability share * level.
    """

    correlation: tuple[Group, ...]
    degrees: int
    shares: Group

    def error(self, level: float) -> float:
        """How probable it is that any of them does."""
        import numpy as np
        from scipy import stats

        if len(self.shares) == 1:
            return min(1.0, level)
        bounds = stats.t.isf(np.minimum(1.0, level * np.asarray(self.shares)), self.degrees)
        none = stats.multivariate_t.cdf(
            np.maximum(bounds, -1e3),
            shape=np.asarray(self.correlation),
            df=self.degrees,
            random_state=np.random.default_rng(_SEED),
        )
        return 1 - float(none)

    def level(self, error: float) -> float:
        """The level at which that is so probable: between Bonferroni's and that of the largest share alone."""
        from scipy import optimize

        if len(self.shares) == 1:
            return error
        highest = error / max(self.shares)
        return float(optimize.brentq(lambda at: self.error(at) - error, 0.98 * error, 1.02 * highest, xtol=1e-5))


def trend(hours: Sequence[float], values: Sequence[float]) -> Trend | None:
    """The line through `values` over `hours`; None for fewer than three, or if all are of the same moment."""
    if len(values) < 3 or max(hours) - min(hours) <= 0:
        return None
    if max(values) - min(values) <= 0:
        return Trend(0.0, values[0], 1.0)
    from scipy import stats

    line = stats.linregress(hours, values)
    return Trend(float(line.slope), float(line.intercept), float(line.pvalue))


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
    from scipy import stats

    return float(stats.t.ppf(probability, degrees))


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
