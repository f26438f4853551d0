"""Least squares with intervals, and the words for a design that cannot answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sweeper.statistics.stats import t_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval in which the truth lies with 95 % confidence."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the sign is certain."""
        return self.low > 0 or self.high < 0

    def scaled(self, factor: float) -> Interval:
        """The interval of a multiple. `factor` is positive."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True)
class Noise:
    """The variance that one value of weight 1 has, and the degrees of freedom that it is known with."""

    variance: float
    degrees: float


@dataclass(frozen=True)
class Fit:
    """Coefficients, their covariance without the variance of a value, and what that variance is."""

    coefficients: tuple[float, ...]
    unscaled: tuple[tuple[float, ...], ...]
    noise: Noise

    def of(self, combination: Sequence[float], comparisons: int = 1) -> Interval:
        """A weighted sum of the coefficients; as one of so many comparisons."""
        value = math.fsum(c * x for c, x in zip(combination, self.coefficients, strict=True))
        spread = sum(
            a * self.unscaled[i][j] * b for i, a in enumerate(combination) for j, b in enumerate(combination)
        )
        return around(value, max(0.0, spread) * self.noise.variance, self.noise.degrees, comparisons)


ENOUGH_DEGREES = 3
"""From so many on the residuals tell the variance; below, the noise that is known otherwise does."""


def around(value: float, variance: float, degrees: float, comparisons: int = 1) -> Interval:
    """95 % by Student's t; of several comparisons all hold together (Bonferroni)."""
    reach = t_quantile(1 - 0.025 / comparisons, degrees) * math.sqrt(variance)
    return Interval(value, value - reach, value + reach)


def fit(
    design: Sequence[Sequence[float]], values: Sequence[float], weights: Sequence[float], noise: Noise
) -> Fit | None:
    """The weighted least-squares fit; None where the design leaves a coefficient open.

    weights: inverse variances relative to a value of weight 1. noise: what such a value varies by; used where the
    residuals have too few degrees of freedom, and as the least that is believed.
    """
    import numpy as np

    if not design or len(values) < len(design[0]):
        return None
    root = np.sqrt(np.asarray(weights, dtype=float))
    matrix = np.asarray(design, dtype=float) * root[:, None]
    scale = np.linalg.norm(matrix, axis=0)
    if np.any(scale == 0):
        return None
    matrix /= scale
    found = solve(matrix, np.asarray(values, dtype=float) * root)
    if not found.known.all():
        return None
    degrees = len(values) - matrix.shape[1]
    residual = float(np.sum(found.rest**2))
    used = noise
    if degrees >= ENOUGH_DEGREES and residual / degrees > noise.variance:
        used = Noise(residual / degrees, degrees)
    unscaled = found.unscaled / np.outer(scale, scale)
    return Fit(
        tuple(float(x) for x in found.coefficients / scale),
        tuple(tuple(map(float, row)) for row in unscaled),
        used,
    )


@dataclass(frozen=True)
class Solution:
    """Coefficients [c] and their covariance in units of a value's variance [c, c]; what the values leave open [n].

    known [c]: whether the design tells a coefficient from all others; those that it does not mean nothing.
    """

    coefficients: Array
    unscaled: Array
    known: NDArray[np.bool_]
    rest: Array


def solve(design: Array, values: Array) -> Solution:
    """Least squares of values [n] by a design [n, c], which may leave coefficients open."""
    import numpy as np

    inverse = np.linalg.pinv(design, rcond=1 / _WORST_CONDITION)
    coefficients = inverse @ values
    known = np.abs(np.diag(inverse @ design) - 1) < _ALIKE
    return Solution(coefficients, inverse @ inverse.T, known, values - design @ coefficients)


_WORST_CONDITION = 1e6
"""Beyond it two columns are the same but for rounding: draft tokens that always were steps + 1."""


def spanning(matrix: Array) -> Array:
    """Orthonormal columns that span the same as those of `matrix`."""
    import numpy as np

    left, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left[:, sizes > _ROUNDING * max(1.0, float(sizes.max(initial=0.0)))])


def independent(columns: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    """The columns without those that the ones before them already say."""
    import numpy as np

    basis: list[np.ndarray] = []
    kept = []
    for column in columns:
        vector = np.asarray(column, dtype=float)
        length = float(np.linalg.norm(vector))
        rest = vector - sum((float(each @ vector) * each for each in basis), np.zeros(len(vector)))
        left = float(np.linalg.norm(rest))
        if length > 0 and left > _ALIKE * length:
            basis.append(rest / left)
            kept.append(column)
    return kept


_ALIKE = 1e-6
"""What rounding leaves of a column that others add up to."""

_ROUNDING = 1e-8
"""Of the largest singular value: what is less is none."""
