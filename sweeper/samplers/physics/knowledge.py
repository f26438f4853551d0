"""Everything that is known at one moment: the evidence, and the models fitted to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sweeper.samplers.physics.acquisition import expected_improvement
from sweeper.samplers.physics.all_reduce import AllReduce, AllReduceShift
from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.evidence import Evidence
from sweeper.samplers.physics.expectations import Expectations
from sweeper.samplers.physics.kernel import Kernel
from sweeper.samplers.physics.physics_model import PhysicsModel, fit_physics
from sweeper.samplers.physics.plain_model import PlainModel, fit_plain
from sweeper.samplers.physics.prediction import Model
from sweeper.samplers.physics.start_risk import StartRisk

_HANGS = 0.95
"""Chance that a server does not start with communication flags whose all-reduce hung."""


class Teacher:
    """Fits the models of one space to evidence."""

    def __init__(self, encoding: Encoding, all_reduce: AllReduce | None = None) -> None:
        self.encoding = encoding
        self._kernel = Kernel(encoding.flags, [encoding.roles.flag_prior(flag) for flag in encoding.flags])
        self._all_reduce: AllReduceShift | None = None
        if all_reduce is not None:
            self._all_reduce = AllReduceShift(all_reduce, encoding.flags, encoding.default_flags)
        self._expectations = Expectations(encoding, self._all_reduce)

    def learn(self, evidence: Evidence, pending: Batch | None = None) -> Knowledge:
        """Fit everything. `pending`: configurations being measured now, taken to bring what is expected."""
        telling = evidence.most_telling()
        physics, plain = self._physics(telling), self._plain(telling)
        if pending is not None and len(pending):
            physics = physics and self._physics(_imagined(telling, pending, physics))
            plain = plain and self._plain(_imagined(telling, pending, plain))
        told = np.flatnonzero(evidence.failed | np.isfinite(evidence.log_throughput))
        risk = StartRisk(evidence.batch.take(told), evidence.failed[told])
        tried = evidence.batch if pending is None else Batch.join([evidence.batch, pending])
        return Knowledge(evidence, physics, plain, risk, self._all_reduce, frozenset(tried.drafter.tolist()))

    def _physics(self, evidence: Evidence) -> PhysicsModel | None:
        return fit_physics(self.encoding, self._kernel, evidence, self._expectations)

    def _plain(self, evidence: Evidence) -> PlainModel | None:
        return fit_plain(self._kernel, evidence, self._expectations)


@dataclass(frozen=True)
class Knowledge:
    """The fitted models. None: nothing was measured, or (physics) no accept_length. `tried`: drafters that were
    measured, failed, or are being measured.
    """

    evidence: Evidence
    physics: PhysicsModel | None
    plain: PlainModel | None
    risk: StartRisk
    all_reduce: AllReduceShift | None
    tried: frozenset[int] = frozenset()

    @property
    def timed(self) -> Sequence[int]:
        """Columns of the flags whose all-reduces were timed."""
        return () if self.all_reduce is None else self.all_reduce.columns

    def chance(self, batch: Batch) -> FloatArray:
        """P(starts), [n]."""
        chance = self.risk.chance(batch)
        if self.all_reduce is not None:
            chance = chance * (1 - _HANGS * self.all_reduce.fails(batch))
        return chance

    def best(self, model: Model) -> Batch:
        """The best configurations that models are fitted on, the very best first: one that drafts and one that
        does not.
        """
        telling = self.evidence.most_telling()
        measured = telling.batch.take(telling.measured)
        mean = model.predict(measured).throughput
        order = np.argsort(-mean, kind="stable")
        kinds = measured.speculative[order]
        others = np.flatnonzero(kinds != kinds[0])[:1]
        return measured.take(np.concatenate([order[:1], order[others]]))

    def gain(self, model: Model, batch: Batch, best: Batch) -> tuple[FloatArray, FloatArray]:
        """The relative gain over the best one that each configuration should bring, and its lead: [n] each.

        The chance to start is included. best: one configuration.
        """
        mean, variance = model.lead(batch, best)
        return expected_improvement(mean, variance) * self.chance(batch), mean


def _imagined(evidence: Evidence, pending: Batch, model: Model) -> Evidence:
    """The evidence as it would be, had the pending configurations brought what the model expects."""
    predicted = model.predict(pending)
    length = np.full(len(pending), np.nan) if predicted.accept is None else predicted.accept[0]
    return Evidence(
        Batch.join([evidence.batch, pending]),
        np.concatenate([evidence.log_throughput, predicted.throughput]),
        np.concatenate([evidence.log_length, np.where(pending.speculative, length, np.nan)]),
        (*evidence.survival, *[None] * len(pending)),
        np.concatenate([evidence.failed, np.zeros(len(pending), dtype=bool)]),
    )
