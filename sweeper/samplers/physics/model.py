"""Two models of throughput: from acceptance and step time, and a plain one that knows no physics.

log throughput = log accept_length - log step time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sweeper.samplers.physics.accept_head import AcceptHead, fit_acceptance
from sweeper.samplers.physics.all_reduce import AllReduceShift
from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.evidence import Evidence
from sweeper.samplers.physics.gp import Posterior, Sizes, condition, learn_sizes
from sweeper.samplers.physics.kernel import Kernel, Structure
from sweeper.samplers.physics.roles import FlagPrior
from sweeper.samplers.physics.space import position
from sweeper.samplers.physics.step_time import StepTime, fit_step_time, relative_cost

LOG_MS = float(np.log(1000.0))


@dataclass(frozen=True)
class Prediction:
    """Expected logarithms and their variances, [n] each.

    throughput in tokens per second; accept_length, and step time in milliseconds, where the model knows them.
    """

    throughput: FloatArray
    throughput_variance: FloatArray
    accept: tuple[FloatArray, FloatArray] | None = None
    time: tuple[FloatArray, FloatArray] | None = None


class Model(Protocol):
    """Predicts configurations. `noise`: variance of one measured log throughput around the truth."""

    @property
    def noise(self) -> float: ...

    def predict(self, batch: Batch) -> Prediction: ...


@dataclass(frozen=True)
class PhysicsModel:
    """The two heads."""

    acceptance: AcceptHead
    step_time: StepTime

    @property
    def noise(self) -> float:
        """Variance of one measured log throughput around the truth."""
        sizes = (self.acceptance.sizes, self.step_time.sizes)
        return float(sum(np.exp(2 * size.log_noise) for size in sizes))

    def predict(self, batch: Batch) -> Prediction:
        """Both heads and what follows for throughput."""
        accept, time = self.acceptance.predict(batch), self.step_time.predict(batch)
        return Prediction(LOG_MS + accept[0] - time[0], accept[1] + time[1], accept, time)


def fit_physics(
    encoding: Encoding, kernel: Kernel, evidence: Evidence, all_reduce: AllReduceShift | None
) -> PhysicsModel | None:
    """The two heads; None where nothing was measured, or servers that draft never said their accept_length."""
    measured = evidence.take(evidence.measured)
    drafting = evidence.take(np.flatnonzero(evidence.batch.speculative & np.isfinite(evidence.log_length)))
    if not len(measured.batch) or (measured.batch.speculative.any() and not len(drafting.batch)):
        return None
    acceptance = fit_acceptance(
        kernel, encoding.num_drafters, drafting.batch, drafting.log_length, drafting.survival
    )
    length, extra = _lengths(measured, acceptance)
    log_time = LOG_MS + length - measured.log_throughput
    shift = _FlagShift(encoding, all_reduce, measured.batch, log_time)
    sizes = np.array([encoding.roles.flag_prior(flag).size for flag in encoding.flags])
    if all_reduce is not None:
        sizes[all_reduce.columns] *= LEFT_TO_LEARN
    return PhysicsModel(acceptance, fit_step_time(kernel, measured.batch, log_time, extra, sizes, shift))


LEFT_TO_LEARN = 0.5
"""Of a communication flag's expected effect, after its all-reduces were timed."""


def _lengths(measured: Evidence, acceptance: AcceptHead) -> tuple[FloatArray, FloatArray]:
    """log accept_length of measured servers, predicted where it is missing, with the variance of what is predicted."""
    length, extra = np.where(measured.batch.speculative, measured.log_length, 0.0), np.zeros(len(measured.batch))
    missing = np.flatnonzero(~np.isfinite(length))
    if len(missing):
        length[missing], extra[missing] = acceptance.predict(measured.batch.take(missing))
    return length, extra


class _FlagShift:
    """What is expected of the flags beforehand."""

    def __init__(
        self, encoding: Encoding, all_reduce: AllReduceShift | None, batch: Batch, log_time: FloatArray
    ) -> None:
        self._slower: list[tuple[int, int, float]] = []
        for column, flag in enumerate(encoding.flags):
            prior: FlagPrior = encoding.roles.flag_prior(flag)
            for value, change in prior.slower.items():
                code = position(value, flag.values)
                if code >= 0:
                    self._slower.append((column, code, change))
        self._all_reduce = all_reduce
        plain = ~batch.speculative
        base = log_time - self._expected(batch)
        self._base_ms = float(np.exp(np.median(base[plain]) if plain.any() else np.median(base) - 0.5))

    def __call__(self, batch: Batch, costs: FloatArray) -> FloatArray:
        total = self._expected(batch)
        if self._all_reduce is not None:
            total += self._all_reduce.log_change(batch, relative_cost(costs, batch), self._base_ms)
        return total

    def _expected(self, batch: Batch) -> FloatArray:
        total = np.zeros(len(batch))
        for column, code, change in self._slower:
            total += change * (batch.flags[:, column] == code)
        return total


_PLAIN_STRUCTURE = Structure(shape=0.25, stairs=0.05, drafter=0.15, speculation=0.05, pairs=0.04, tree=0.04)
_PLAIN_SPREAD = 0.9
_PLAIN_NOISE = 0.012


@dataclass(frozen=True)
class PlainModel:
    """A Gaussian process on log throughput: the same flags and shapes, without physics."""

    kernel: Kernel
    batch: Batch
    sizes: Sizes
    level: float
    posterior: Posterior

    @property
    def noise(self) -> float:
        """Variance of one measured log throughput around the truth."""
        return float(np.exp(2 * self.sizes.log_noise))

    def predict(self, batch: Batch) -> Prediction:
        """Throughput alone."""
        variances = np.exp(2 * self.sizes.log_sd)
        cross = self.kernel.mixed(batch, self.batch, variances) + _common(batch, self.batch)
        prior = self.kernel.diagonal(batch, variances) + _common_diagonal(batch)
        return Prediction(self.level + self.posterior.mean(cross), self.posterior.variance(cross, prior))


def fit_plain(encoding: Encoding, kernel: Kernel, evidence: Evidence) -> PlainModel | None:
    """The plain model; None where nothing was measured."""
    measured = evidence.take(evidence.measured)
    if not len(measured.batch):
        return None
    own = np.array([encoding.roles.flag_prior(flag).size for flag in encoding.flags])
    log_sd = np.log(np.maximum(np.concatenate([own, _PLAIN_STRUCTURE.sizes()]), 1e-4))
    prior = Sizes(log_sd, _PLAIN_SPREAD, float(np.log(_PLAIN_NOISE)))
    level = float(np.median(measured.log_throughput))
    rest = measured.log_throughput - level
    parts = kernel.parts(measured.batch, measured.batch)
    fixed = _common(measured.batch, measured.batch)
    sizes = learn_sizes(parts, fixed, np.zeros(len(rest)), rest, prior)
    covariance = fixed + np.tensordot(np.exp(2 * sizes.log_sd), parts, 1)
    covariance += np.exp(2 * sizes.log_noise) * np.eye(len(rest))
    return PlainModel(kernel, measured.batch, sizes, level, condition(covariance, rest))


def _trend(batch: Batch) -> FloatArray:
    """What throughput may depend on over the whole range: whether it drafts, steps, tokens, topk."""
    speculative = batch.speculative.astype(float)
    columns = (0.3 * speculative, 0.06 * batch.num_steps / 4, 0.1 * np.log2(batch.draft_tokens) / 2.5)
    return np.stack((*columns, 0.06 * np.log2(batch.topk) / 2), axis=1) * speculative[:, None]


def _common(left: Batch, right: Batch) -> FloatArray:
    return np.asarray(0.5**2 + _trend(left) @ _trend(right).T + 0.05**2 * np.outer(left.foreign, right.foreign))


def _common_diagonal(batch: Batch) -> FloatArray:
    return np.asarray(0.5**2 + (_trend(batch) ** 2).sum(axis=1))
