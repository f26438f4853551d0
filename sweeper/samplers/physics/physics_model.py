"""The model with two heads: log throughput = log accept_length - log step time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sweeper.samplers.physics.accept_head import AcceptHead, fit_acceptance
from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.evidence import Evidence
from sweeper.samplers.physics.expectations import Expectations
from sweeper.samplers.physics.kernel import Kernel
from sweeper.samplers.physics.prediction import Prediction
from sweeper.samplers.physics.step_time import StepTime, Timed, fit_step_time

_LOG_MS = float(np.log(1000.0))


@dataclass(frozen=True)
class PhysicsModel:
    """The two heads. See Model for the contract."""

    acceptance: AcceptHead
    step_time: StepTime

    @property
    def noise(self) -> float:
        """Variance of one measured log throughput around the truth."""
        return self.acceptance.sizes.noise + self.step_time.sizes.noise

    def predict(self, batch: Batch) -> Prediction:
        """Both heads and what follows for throughput."""
        accept, time = self.acceptance.predict(batch), self.step_time.predict(batch)
        return Prediction(_LOG_MS + accept[0] - time[0], accept[1] + time[1], accept, time)

    def lead(self, batch: Batch, other: Batch) -> tuple[FloatArray, FloatArray]:
        """How much faster each configuration is expected to be than one other, and the variance."""
        accept, time = self.acceptance.lead(batch, other), self.step_time.lead(batch, other)
        return accept[0] - time[0], accept[1] + time[1]

    def lessons(self, asked: Batch, trials: Batch) -> tuple[FloatArray, ...]:
        """What the trials' accept_lengths and step times would teach."""
        heads = (self.acceptance, self.step_time)
        seen = [np.sqrt(head.predict(trials)[1] + head.sizes.noise) for head in heads]
        accept, time = (head.covariance(asked, trials) for head in heads)
        return accept / seen[0], -time / seen[1]


def fit_physics(
    encoding: Encoding, kernel: Kernel, evidence: Evidence, expectations: Expectations
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
    log_time = _LOG_MS + length - measured.log_throughput
    base_ms = expectations.base_ms(measured.batch, log_time)

    def shift(batch: Batch, costs: FloatArray) -> FloatArray:
        return expectations.shift(batch, costs, base_ms)

    step_time = fit_step_time(kernel, Timed(measured.batch, log_time, extra), expectations.sizes, shift)
    return PhysicsModel(acceptance, step_time)


def _lengths(measured: Evidence, acceptance: AcceptHead) -> tuple[FloatArray, FloatArray]:
    """log accept_length of measured servers, and its variance where it had to be predicted."""
    length, extra = np.where(measured.batch.speculative, measured.log_length, 0.0), np.zeros(len(measured.batch))
    missing = np.flatnonzero(~np.isfinite(length))
    if len(missing):
        length[missing], extra[missing] = acceptance.predict(measured.batch.take(missing))
    return length, extra
