"""What a configuration is expected to add to the best one known."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from sweeper.samplers.physics.batch import FloatArray


def expected_improvement(mean: FloatArray, variance: FloatArray, best: float) -> FloatArray:
    """The expected amount by which a normal variable exceeds `best`, nothing where it does not: [n].

    On logarithms of throughput this is, for the few percent that matter here, the expected relative gain.
    """
    deviation = np.sqrt(variance)
    z = (mean - best) / deviation
    return np.asarray(deviation * (z * ndtr(z) + np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)))
