"""Ratios to a control, and how sure one can be of them. On the logarithmic scale, where noise is even.

What is faster is judged by values made after it was chosen. The values by which it was chosen say something, too,
if one allows for the choice: both are combined by the inverse normal method of adaptive designs with a selection
(Lehmacher and Wassmer 1999; Bretz and others 2006).
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sweeper.statistics.stats import CONFIDENCE, Group, exp, pooled_variance, t_quantile, uneven_spreads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHOOSING_WEIGHT = 0.15
"""The share of what is known that comes from the values by which a group was chosen, where there are any.

In simulated nights of 20 configurations weights from 0.1 to 0.2 find most; the choice costs more what they bring.
"""

FOREIGN = 0.1
"""The spread of others is not used when chance would make it differ this much, or more, this rarely."""

NORMAL = statistics.NormalDist()

LEAST_P = 0.001
"""The values by which a group was chosen never count for more than such a p: fresh ones must show a gain, too."""

_SURE = 1e-12
"""No other probability is taken to be nearer to 0 or 1."""


@dataclass(frozen=True)
class Evidence:
    """By how much the mean logarithm of a group exceeds the control's, with its standard error.

    `degrees` of freedom: 0 when no spread is known. `among`: it may be the greatest of so many, equally good ones.
    `least`: with a smaller gap the group would not have been chosen, so that none would be seen.
    """

    gap: float
    error: float = 0.0
    degrees: float = 0.0
    among: int = 1
    least: float = -math.inf

    def p(self, truth: float = 0.0) -> float:
        """How often chance would show such a gap, or a greater one among them, if all are `truth`."""
        chosen = _tail(self, self.least, truth)
        alone = _tail(self, self.gap, truth) / chosen if chosen else 1.0
        return 1.0 if alone >= 1 else -math.expm1(self.among * math.log1p(-alone))


@dataclass(frozen=True)
class Ratio:
    """A ratio of means. What needs a spread is None when the spread is unknown.

    `low` and `high`: each alone holds with 95 % confidence, one-sided and together with the same bound of all
    other ratios of the comparison; both hold with 90 %. `p`: how often a ratio this high would be seen if in truth
    none were above 1. `t`: the logarithm over its standard error; `enough`: from which t on `low` is above 1, were
    the spread known exactly.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    t: float | None = None
    enough: float = NORMAL.inv_cdf(CONFIDENCE)

    @property
    def above_one(self) -> bool:
        """Whether the ratio is significantly greater than 1."""
        return self.low is not None and self.low > 1


@dataclass(frozen=True)
class Terms:
    """What else is known of the groups that are compared.

    `shares`: how the allowed error is divided among them, equally if not said. `others`: of these groups only the
    spread is used. `choosing`: what the values said by which each group was chosen, if they may count.
    """

    shares: Group = ()
    others: tuple[Group, ...] = ()
    choosing: tuple[Evidence | None, ...] = ()


def ratios_to_control(groups: tuple[Group, ...], control: Group, terms: Terms | None = None) -> tuple[Ratio, ...]:
    """The ratio of each group's mean to the control's, one-sided and all together: Bonferroni's correction.

    Groups hold positive values. The spread is pooled over all of them: it belongs to the host more than to a
    configuration. Where spreads are uneven (a server that is fast after one start and slow after the next), each
    pair is compared for itself: Welch's test.
    """
    terms = terms or Terms()
    shares = terms.shares or tuple(1 / len(groups) for _ in groups)
    choosing = terms.choosing or tuple(None for _ in groups)
    if uneven_spreads((control, *groups)):
        found = tuple(_welch(group, control) for group in groups)
    else:
        found = evidence(groups, control, others=terms.others)
    return tuple(
        _ratio(seen, share, earlier) for seen, share, earlier in zip(found, shares, choosing, strict=True)
    )


@lru_cache(maxsize=4096)  # what comes next is asked for after each launch, from the same values
def evidence(
    groups: tuple[Group, ...],
    control: Group,
    hours: tuple[Group, ...] = (),
    others: tuple[Group, ...] = (),
    among: int = 1,
) -> tuple[Evidence, ...]:
    """How the groups differ from the control, the spread pooled over all, and over `others` unless theirs differs.

    `hours`: when each value was measured, the control's first. With them a steady drift that all share is
    estimated along with the means, and taken out (analysis of covariance).
    """
    import numpy as np
    from scipy import linalg

    if not groups:
        return ()
    logs, design = _model((control, *groups), hours)
    means, _, rank, _ = linalg.lstsq(design, logs)
    own = slice(1, len(groups) + 1)
    gaps = [float(mean) for mean in means[own]]
    degrees = len(logs) - int(rank)
    if degrees < 1 or rank < design.shape[1]:
        return tuple(Evidence(gap) for gap in gaps)
    variance = float(np.sum((logs - design @ means) ** 2)) / degrees
    variance, degrees = _with_others(variance, degrees, others)
    if variance < 1e-20:
        variance = 0.0
    spreads = np.sqrt(variance * np.diag(linalg.inv(design.T @ design))[own])
    return tuple(Evidence(gap, float(error), degrees, among) for gap, error in zip(gaps, spreads, strict=True))


def _ratio(seen: Evidence, share: float, choosing: Evidence | None) -> Ratio:
    """What is seen of one group that may use a `share` of the error."""
    allowed = 1 - CONFIDENCE
    if not seen.degrees:
        return Ratio(exp(seen.gap))
    if not seen.error:
        return _exact(seen.gap)
    reach = t_quantile(1 - share * allowed, seen.degrees) * seen.error
    low, p = seen.gap - reach, min(1.0, seen.p() / share)
    if choosing is not None:
        low, p = _lowest(seen, share, choosing), _combined(seen, share, choosing)
    return Ratio(
        value=exp(seen.gap),
        low=exp(low),
        high=exp(seen.gap + reach),
        p=p,
        t=seen.gap / seen.error,
        enough=_enough(share, choosing),
    )


def _combined(seen: Evidence, share: float, choosing: Evidence, truth: float = 0.0) -> float:
    """How often both together would be so high if in truth the gap were `truth`."""
    fresh, before = _normal(seen.p(truth) / share), _normal(max(choosing.p(truth), LEAST_P))
    both = math.sqrt(CHOOSING_WEIGHT) * before + math.sqrt(1 - CHOOSING_WEIGHT) * fresh
    return NORMAL.cdf(-both)


def _lowest(seen: Evidence, share: float, choosing: Evidence) -> float:
    """The smallest gap that does not contradict both together."""
    from scipy import optimize

    far = 1e3 * (seen.error + choosing.error) + abs(seen.gap - choosing.gap)
    between = (seen.gap - far, seen.gap + far)
    allowed = 1 - CONFIDENCE
    return float(optimize.brentq(lambda gap: _combined(seen, share, choosing, gap) - allowed, *between, xtol=1e-7))


def _enough(share: float, choosing: Evidence | None) -> float:
    """The t of fresh values from which on the group is significant, were the spread known exactly."""
    needed = NORMAL.inv_cdf(CONFIDENCE)
    if choosing is not None:
        known = math.sqrt(CHOOSING_WEIGHT) * _normal(max(choosing.p(), LEAST_P))
        needed = (needed - known) / math.sqrt(1 - CHOOSING_WEIGHT)
    return _normal(share * NORMAL.cdf(-needed))


def _normal(p: float) -> float:
    """The value that a normally distributed number exceeds with this probability."""
    return -NORMAL.inv_cdf(min(max(p, _SURE), 1 - _SURE))


def _tail(seen: Evidence, gap: float, truth: float) -> float:
    """The chance of this gap, or a greater one, in one group that varies like `seen`: Student's distribution."""
    from scipy import special

    if not seen.error:
        return 0.0 if gap > truth + 1e-9 else 1.0
    return float(special.stdtr(seen.degrees, (truth - gap) / seen.error))


def _exact(gap: float) -> Ratio:
    """Of values that never vary: as sure as can be."""
    ratio, above = exp(gap), gap > 1e-9
    return Ratio(ratio, ratio, ratio, 0.0 if above else 1.0, math.inf if above else -math.inf)


def _welch(group: Group, control: Group) -> Evidence:
    """One group against the control with the spread of these two: Welch's test."""
    from scipy import stats

    ours, theirs = ([math.log(value) for value in values] for values in (group, control))
    gap = statistics.fmean(ours) - statistics.fmean(theirs)
    if min(len(ours), len(theirs)) < 2:
        return Evidence(gap)
    error = math.sqrt(sum(statistics.variance(values) / len(values) for values in (ours, theirs)))
    return Evidence(gap, error, float(stats.ttest_ind(ours, theirs, equal_var=False).df))


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
