"""A Gaussian process whose covariance is a sum of given parts; only the size of each part is learnt.

With a handful of sizes under a prior, three observations are enough to start from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from sweeper.samplers.physics.batch import FloatArray

_JITTER = 1e-8
_MAX_ITERATIONS = 25
_NOISE_SPREAD = 0.3


@dataclass(frozen=True)
class Posterior:
    """What n observations leave possible. factor: lower Cholesky [n, n]; weights [n]."""

    factor: FloatArray
    weights: FloatArray

    def mean(self, cross: FloatArray) -> FloatArray:
        """The expected values where the covariance with the observations is `cross` [m, n]."""
        return np.asarray(cross @ self.weights)

    def variance(self, cross: FloatArray, prior: FloatArray) -> FloatArray:
        """The variances left of `prior` [m]."""
        explained = solve_triangular(self.factor, cross.T, lower=True, check_finite=False)
        return np.asarray(np.maximum(prior - np.einsum("nm,nm->m", explained, explained), 1e-10))

    def covariance(self, left: FloatArray, right: FloatArray, prior: FloatArray) -> FloatArray:
        """The covariance left of `prior` [l, r] between two sets whose cross-covariances are given: [l, r]."""
        a = solve_triangular(self.factor, left.T, lower=True, check_finite=False)
        b = solve_triangular(self.factor, right.T, lower=True, check_finite=False)
        return np.asarray(prior - a.T @ b)


def condition(covariance: FloatArray, values: FloatArray) -> Posterior:
    """The posterior of observations with this covariance (noise included). Raises LinAlgError if it is not one."""
    factor, _ = _factorise(covariance)
    return Posterior(factor, np.asarray(cho_solve((factor, True), values, check_finite=False)))


@dataclass(frozen=True)
class Sizes:
    """Expected standard deviations of each part (their logarithms), how unsure these are, and the noise's."""

    log_sd: FloatArray
    spread: FloatArray
    log_noise: float

    @property
    def variances(self) -> FloatArray:
        """Of the parts."""
        return np.asarray(np.exp(2 * self.log_sd))

    @property
    def noise(self) -> float:
        """Variance of one observation around the truth."""
        return float(np.exp(2 * self.log_noise))


def learn_sizes(
    parts: FloatArray, fixed: FloatArray, extra: FloatArray, values: FloatArray, prior: Sizes
) -> Sizes:
    """The most probable sizes.

    parts [c, n, n]: the unit covariances. fixed [n, n]: what is not learnt. extra [n]: variance of each
    observation beyond the common noise. With fewer than three observations the prior is returned.
    """
    num = len(values)
    if num < 3:
        return prior
    flat = parts.reshape(len(parts), -1)
    center = np.append(prior.log_sd, prior.log_noise)
    scale = np.append(prior.spread, _NOISE_SPREAD)
    base = fixed + np.diag(extra + _JITTER)
    identity = np.eye(num)

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        variance = np.exp(2 * theta)
        covariance = base + (variance[:-1] @ flat).reshape(num, num) + variance[-1] * identity
        factor, jitter = _factorise(covariance)
        inverse = cho_solve((factor, True), identity, check_finite=False)
        weights = inverse @ values
        slope = inverse - np.outer(weights, weights)
        gradient = np.append(variance[:-1] * (flat @ slope.ravel()), variance[-1] * np.trace(slope))
        off = (theta - center) / scale
        value = 0.5 * values @ weights + np.log(np.diag(factor)).sum() + 0.5 * off @ off + jitter
        return float(value), gradient + off / scale

    bounds = list(zip(center - 3.5 * scale, center + 3.0 * scale, strict=True))
    found: Any = minimize(
        loss, center, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _MAX_ITERATIONS}
    )
    return Sizes(found.x[:-1], prior.spread, float(found.x[-1]))


def _factorise(covariance: FloatArray) -> tuple[FloatArray, float]:
    """The lower Cholesky factor, and the jitter that it took beyond none."""
    jitter = 0.0
    while True:
        try:
            factor, _ = cho_factor(covariance + jitter * np.eye(len(covariance)), lower=True, check_finite=False)
            return np.tril(factor), jitter
        except LinAlgError:
            jitter = max(10 * jitter, 1e-8)
            if jitter > 1:
                raise
