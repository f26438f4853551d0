"""What a configuration is expected to bring: to the best one known, and to the choice of the ones after it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.special import ndtr

from sweeper.samplers.physics.batch import FloatArray

_ORDER = 7


def expected_improvement(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """The expected amount by which a normal variable exceeds 0, nothing where it does not: [n].

    On logarithms of throughput this is, for the few percent that matter here, the expected relative gain.
    """
    deviation = np.sqrt(variance)
    z = mean / deviation
    return np.asarray(deviation * (z * ndtr(z) + np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)))


def value_of_lessons(mean: FloatArray, lessons: Sequence[FloatArray]) -> FloatArray:
    """How much better the then best-looking configuration is expected to be for what a trial teaches: [trials].

    The knowledge gradient (Frazier et al. 2009). mean [asked]: what is expected now. lessons: [asked, trials],
    standard deviations by which what a trial measures moves it.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(_ORDER)
    weights = weights / weights.sum()
    value = np.zeros(lessons[0].shape[1])
    for at in product(range(_ORDER), repeat=len(lessons)):
        moved = mean[:, None] + sum(nodes[i] * lesson for i, lesson in zip(at, lessons, strict=True))
        value += np.prod(weights[list(at)]) * moved.max(axis=0)
    return np.asarray(value - mean.max())
