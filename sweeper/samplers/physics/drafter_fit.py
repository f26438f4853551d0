"""The six acceptance numbers of one drafter from its trials: the most probable ones, and how sure they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from sweeper.samplers.physics.acceptance import (
    LOWER,
    PRIOR_MEAN,
    PRIOR_SD,
    UPPER,
    survival_tables,
)
from sweeper.samplers.physics.batch import MAX_TREE_TOKENS, FloatArray, IntArray

Shape = tuple[int, int, int]
"""num_steps, topk, draft_tokens."""

_MISFIT = 0.013
_SCATTER = 0.012
"""Of a survival share: what the model gets wrong, and what one launch differs from the next."""

_LENGTH_ERROR = 0.03
"""Of the logarithm of an accept_length without a histogram."""

_STEP = 1e-3
_MAX_EVALUATIONS = 20
_RELATED = np.array([1.2, 0.8, 0.8, 0.7, 0.6, 0.6])
"""A second drafter on the same text resembles the first: its prior spread, relative."""


@dataclass(frozen=True)
class Accepted:
    """What all launches of one shape saw. survival: mean shares, or None; log_length: mean logarithm."""

    shape: Shape
    num_launches: int
    log_length: float
    survival: FloatArray | None


@dataclass(frozen=True)
class DrafterFit:
    """mean [6] and covariance [6, 6] of a drafter's acceptance numbers."""

    mean: FloatArray
    covariance: FloatArray

    def tables(self, topk: int, max_steps: int) -> tuple[FloatArray, FloatArray]:
        """log accept_length [num_steps, tokens] and its slopes [num_steps, tokens, 6], in units of `root`.

        A chain uses tokens = 1. The row of no steps is 0.
        """
        shifts = 0.1 * np.sqrt(np.diag(self.covariance)).clip(1e-3)
        shifts = np.where(self.mean + shifts < UPPER, shifts, -shifts)
        stacked = np.vstack([self.mean, self.mean + np.diag(shifts)])
        tables = survival_tables(stacked, topk, range(1, max_steps + 1))
        logs = np.stack([np.log1p(tables[s].sum(axis=2)) for s in range(1, max_steps + 1)], axis=1)
        logs = np.concatenate([np.zeros_like(logs[:, :1]), logs], axis=1)
        slopes = (logs[1:] - logs[0]) / shifts[:, None, None]
        root = np.linalg.cholesky(self.covariance + 1e-12 * np.eye(len(self.mean)))
        return logs[0], np.einsum("isn,ij->snj", slopes, root)


def prior_fit(related: DrafterFit | None) -> DrafterFit:
    """What is expected of a drafter without a trial, knowing another one on the same text."""
    if related is None:
        return DrafterFit(PRIOR_MEAN, np.diag(PRIOR_SD**2))
    return DrafterFit(related.mean, np.diag((PRIOR_SD * _RELATED) ** 2))


def fit_drafter(accepted: Sequence[Accepted], prior: DrafterFit) -> DrafterFit:
    """The most probable parameters with their curvature (Laplace), by least squares within bounds."""
    if not accepted:
        return prior
    center, scale = prior.mean, np.sqrt(np.diag(prior.covariance))
    shapes: Mapping[int, set[int]] = defaultdict(set)
    for seen in accepted:
        shapes[seen.shape[1]].add(seen.shape[0])

    def residuals(batch: FloatArray) -> FloatArray:
        tables = {topk: survival_tables(batch, topk, sorted(steps)) for topk, steps in shapes.items()}
        parts = [(batch - center) / scale]
        for seen in accepted:
            steps, topk, tokens = seen.shape
            parts.append(_misses(seen, tables[topk][steps][:, table_index(topk, tokens)]))
        return np.concatenate(parts, axis=1)

    def jacobian(point: FloatArray) -> FloatArray:
        values = residuals(np.vstack([point, point + _STEP * np.eye(len(point))]))
        return np.asarray((values[1:] - values[0]).T / _STEP)

    def single(point: FloatArray) -> FloatArray:
        return np.asarray(residuals(point[None])[0])

    start = np.clip(center, LOWER + 1e-3, UPPER - 1e-2)
    found = least_squares(
        single,
        start,
        jac=jacobian,
        bounds=(LOWER, UPPER),
        max_nfev=_MAX_EVALUATIONS,
        ftol=1e-4,
        xtol=1e-4,
    )
    slopes = np.asarray(found.jac)
    return DrafterFit(np.asarray(found.x), np.asarray(np.linalg.inv(slopes.T @ slopes)))


def table_index(topk: int | IntArray, tokens: int | IntArray) -> IntArray:
    """Where in a table of survival_tables a shape stands."""
    return np.where(np.asarray(topk) == 1, 1, np.minimum(tokens, MAX_TREE_TOKENS))


def _misses(seen: Accepted, predicted: FloatArray) -> FloatArray:
    """[b, …] misses of the prediction, in standard deviations. predicted [b, depth]: survival shares."""
    if seen.survival is None:
        error = (_LENGTH_ERROR**2 * (1 + 1 / seen.num_launches) / 2) ** 0.5
        return np.asarray((seen.log_length - np.log1p(predicted.sum(axis=1, keepdims=True))) / error)
    depth = min(len(seen.survival), predicted.shape[1])
    error = (_MISFIT**2 + _SCATTER**2 / seen.num_launches) ** 0.5
    return np.asarray((seen.survival[:depth] - predicted[:, :depth]) / error)
