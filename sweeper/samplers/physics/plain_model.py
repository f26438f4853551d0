"""A model of throughput alone: the same flags and shapes, without physics. What the other must be better than."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.evidence import Evidence
from sweeper.samplers.physics.expectations import Expectations
from sweeper.samplers.physics.gp import Posterior, Sizes, condition, learn_sizes
from sweeper.samplers.physics.kernel import Kernel, Structure
from sweeper.samplers.physics.prediction import Prediction

STRUCTURE = Structure(shape=0.25, stairs=0.05, drafter=0.15)
_NOISE = 0.012
_LEVEL_SD = 0.5
_FOREIGN_SD = 0.05
_TREND_SD = (0.3, 0.06, 0.1, 0.06)
"""Of what drafting at all, steps, tokens and topk do over their whole range."""


@dataclass(frozen=True)
class PlainModel:
    """A Gaussian process on log throughput. See Model for the contract."""

    kernel: Kernel
    batch: Batch
    sizes: Sizes
    level: float
    posterior: Posterior
    expectations: Expectations

    @property
    def noise(self) -> float:
        """Variance of one measured log throughput around the truth."""
        return float(np.exp(2 * self.sizes.log_noise))

    def predict(self, batch: Batch) -> Prediction:
        """Throughput alone."""
        cross = self._covariance(batch, self.batch)
        return Prediction(self._mean(batch, cross), self.posterior.variance(cross, self._diagonal(batch)))

    def lead(self, batch: Batch, other: Batch) -> tuple[FloatArray, FloatArray]:
        """How much faster each configuration is expected to be than one other, and the variance."""
        cross, other_cross = self._covariance(batch, self.batch), self._covariance(other, self.batch)
        apart = self._diagonal(batch) + self._diagonal(other) - 2 * self._covariance(batch, other)[:, 0]
        mean = self._mean(batch, cross) - self._mean(other, other_cross)
        return mean, self.posterior.variance(cross - other_cross, apart)

    def _mean(self, batch: Batch, cross: FloatArray) -> FloatArray:
        return np.asarray(self.level + self.posterior.mean(cross) - self.expectations.slower(batch))

    def _diagonal(self, batch: Batch) -> FloatArray:
        """The variances before anything was measured: [n]."""
        whole = self.kernel.diagonal(batch, self.sizes.variances) + _LEVEL_SD**2
        return np.asarray(whole + (_trend(batch) ** 2).sum(axis=1))

    def lessons(self, asked: Batch, trials: Batch) -> tuple[FloatArray, ...]:
        """What the trials' throughput would teach."""
        crosses = [self._covariance(batch, self.batch) for batch in (asked, trials)]
        covariance = self.posterior.covariance(crosses[0], crosses[1], self._covariance(asked, trials))
        return (covariance / np.sqrt(self.predict(trials).throughput_variance + self.noise),)

    def _covariance(self, left: Batch, right: Batch) -> FloatArray:
        return self.kernel.mixed(left, right, self.sizes.variances) + _common(left, right)


def fit_plain(kernel: Kernel, evidence: Evidence, expectations: Expectations) -> PlainModel | None:
    """The plain model; None where nothing was measured."""
    measured = evidence.take(evidence.measured)
    if not len(measured.batch):
        return None
    values = measured.log_throughput + expectations.slower(measured.batch)
    level = float(np.median(values))
    parts = kernel.parts(measured.batch, measured.batch)
    fixed = _common(measured.batch, measured.batch)
    prior = kernel.prior(expectations.sizes, STRUCTURE, _NOISE)
    sizes = learn_sizes(parts, fixed, np.zeros(len(values)), values - level, prior)
    covariance = fixed + np.tensordot(sizes.variances, parts, 1) + sizes.noise * np.eye(len(values))
    posterior = condition(covariance, values - level)
    return PlainModel(kernel, measured.batch, sizes, level, posterior, expectations)


def _trend(batch: Batch) -> FloatArray:
    """What throughput may depend on over the whole range: whether it drafts, steps, tokens, topk."""
    columns = (
        np.ones(len(batch)),
        batch.num_steps / 4,
        np.log2(batch.draft_tokens) / 2.5,
        np.log2(batch.topk) / 2,
    )
    return np.stack(columns, axis=1) * _TREND_SD * batch.speculative[:, None]


def _common(left: Batch, right: Batch) -> FloatArray:
    foreign = _FOREIGN_SD**2 * np.outer(left.foreign, right.foreign)
    return np.asarray(_LEVEL_SD**2 + _trend(left) @ _trend(right).T + foreign)
