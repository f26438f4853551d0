"""The step-time head: what one decode step costs, from the tokens verified, the draft forwards and the flags.

    step time = level * flags * (1 + fixed + forward (s - 1) + token (n - 1) + branching [k > 1]
                                   + beam (s - 1)(k - 1) + experts (1 - exp(-(n - 1) / 16))
                                   + tiles of 8, 16 and 32 tokens begun)

with s steps, topk k and n tokens verified, relative to a step without speculation, on the logarithmic scale.
The costs are positive and found together with a Gaussian process for the rest (flags, their interactions,
stairs), by linearising around the best ones a few times.

The expected costs and sizes were set on simulated servers: nine machines, four qualities of drafters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.gp import Posterior, Sizes, condition, learn_sizes
from sweeper.samplers.physics.kernel import Kernel, Structure

_TILES = (8, 16, 32)

_FEW = 16.0
"""Tokens to verify beyond which most experts of a mixture are read already, so that more cost less."""

COSTS = np.log(np.array([0.55, 0.075, 0.018, 0.033, 0.007, 0.06, 0.002, 0.002, 0.002]))
"""fixed, per further draft forward, per further token, branching, per branch of a further forward, experts, and
per token of each further tile of 8, 16 and 32."""

COSTS_SD = np.array([0.65, 0.5, 1.2, 0.8, 0.7, 1.2, 1.5, 1.5, 1.5])

STRUCTURE = Structure(shape=0.045, stairs=0.025, drafter=0.03)
_LEVEL_SD = 1.0
_FOREIGN_SD = 0.05
"""How far the level of an earlier study on the same host may be off."""

NOISE = 0.009

Shift = Callable[[Batch, FloatArray], FloatArray]
"""What is expected of the flags beforehand, as a logarithm [n], given the batch and the costs' logarithms."""


def relative_cost(costs: FloatArray, batch: Batch) -> FloatArray:
    """Logarithm of the step time relative to a step without speculation: [n]; 0 where nothing is drafted."""
    return np.asarray(np.log1p(_terms(batch) @ np.exp(costs)))


def _terms(batch: Batch) -> FloatArray:
    s, k, n = batch.num_steps, batch.topk, batch.draft_tokens
    experts = 1 - np.exp(-(n - 1) / _FEW)
    tiles = [size * (np.ceil(n / size) - 1) for size in _TILES]
    columns = (np.ones(len(batch)), s - 1, n - 1, (k > 1).astype(float), (s - 1) * (k - 1), experts, *tiles)
    return np.stack(columns, axis=1) * batch.speculative[:, None]


def _slopes(costs: FloatArray, batch: Batch) -> FloatArray:
    """d relative_cost / d costs, in units of the prior's standard deviations: [n, 9]."""
    terms = _terms(batch) * np.exp(costs)
    return np.asarray(terms / (1 + terms.sum(axis=1, keepdims=True)) * COSTS_SD)


@dataclass(frozen=True)
class StepTime:
    """A fitted head. All times are logarithms of milliseconds per decode step."""

    kernel: Kernel
    batch: Batch
    sizes: Sizes
    costs: FloatArray
    level: float
    posterior: Posterior
    shift: Shift

    def predict(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """Expected log step time and its variance, [n] each."""
        cross = self._prior(batch, self.batch)
        return self._mean(batch, cross), self.posterior.variance(cross, self._diagonal(batch))

    def lead(self, batch: Batch, other: Batch) -> tuple[FloatArray, FloatArray]:
        """How much longer each step is expected to take than that of one other, and the variance: [n] each."""
        cross, other_cross = self._prior(batch, self.batch), self._prior(other, self.batch)
        apart = self._diagonal(batch) + self._diagonal(other) - 2 * self._prior(batch, other)[:, 0]
        mean = self._mean(batch, cross) - self._mean(other, other_cross)
        return mean, self.posterior.variance(cross - other_cross, apart)

    def covariance(self, left: Batch, right: Batch) -> FloatArray:
        """The covariance of the log step times of two batches: [left, right]."""
        crosses = [self._prior(side, self.batch) for side in (left, right)]
        return self.posterior.covariance(crosses[0], crosses[1], self._prior(left, right))

    def _mean(self, batch: Batch, cross: FloatArray) -> FloatArray:
        expected = self.level + _linear(self.costs, batch) + self.shift(batch, self.costs)
        return np.asarray(self.posterior.mean(cross) + expected)

    def _prior(self, left: Batch, right: Batch) -> FloatArray:
        """The covariance before anything was measured: [left, right]."""
        a, b = _slopes(self.costs, left), _slopes(self.costs, right)
        return self.kernel.mixed(left, right, self.sizes.variances) + a @ b.T + _LEVEL_SD**2

    def _diagonal(self, batch: Batch) -> FloatArray:
        """Of the same: [n]."""
        slopes = _slopes(self.costs, batch)
        return np.asarray(
            self.kernel.diagonal(batch, self.sizes.variances) + (slopes**2).sum(axis=1) + _LEVEL_SD**2
        )


def _linear(costs: FloatArray, batch: Batch) -> FloatArray:
    """The prior mean of the relative cost, linearised at `costs`."""
    return np.asarray(relative_cost(costs, batch) + _slopes(costs, batch) @ ((COSTS - costs) / COSTS_SD))


@dataclass(frozen=True)
class Timed:
    """Measured configurations: log milliseconds per step, and their variance beyond the common noise, [n]."""

    batch: Batch
    log_time: FloatArray
    extra: FloatArray


def fit_step_time(kernel: Kernel, timed: Timed, flag_sizes: FloatArray, shift: Shift) -> StepTime:
    """Fit the head to at least one configuration. flag_sizes [f]: expected sizes of the flags' effects."""
    batch, log_time, extra = timed.batch, timed.log_time, timed.extra
    prior = sizes = kernel.prior(flag_sizes, STRUCTURE, NOISE)
    parts = kernel.parts(batch, batch)
    common = _LEVEL_SD**2 + _FOREIGN_SD**2 * np.outer(batch.foreign, batch.foreign)
    costs = COSTS
    for learn in (False, False, True, False, True, False):
        rest = log_time - _linear(costs, batch) - shift(batch, costs)
        level = float(np.median(rest))
        slopes = _slopes(costs, batch)
        fixed = common + slopes @ slopes.T
        if learn:
            sizes = learn_sizes(parts, fixed, extra, rest - level, prior)
        variances = sizes.variances
        noise = sizes.noise + extra
        covariance = fixed + np.tensordot(variances, parts, 1) + np.diag(noise)
        posterior = condition(covariance, rest - level)
        last = costs
        moved = COSTS + COSTS_SD * (slopes.T @ posterior.weights)
        costs = np.clip(moved, COSTS - 3 * COSTS_SD, COSTS + 3 * COSTS_SD)
    return StepTime(kernel, batch, sizes, last, level, posterior, shift)
