"""All that was observed, as arrays over one search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sweeper.samplers.physics.batch import Batch, BoolArray, FloatArray, IntArray
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.observation import Observation

MAX_MEASURED = 200
"""Measured configurations that the models are fitted on: the best, the latest, and some of all others."""


@dataclass(frozen=True)
class Evidence:
    """n observed configurations.

    log_throughput, log_length: logarithms of tokens per second and of accept_length, NaN where not measured.
    survival: shares of verify steps that accepted at least 1, 2, … drafts, or None.
    """

    batch: Batch
    log_throughput: FloatArray
    log_length: FloatArray
    survival: tuple[tuple[float, ...] | None, ...]
    failed: BoolArray

    @property
    def measured(self) -> IntArray:
        """Indices of those with a throughput."""
        return np.flatnonzero(np.isfinite(self.log_throughput))

    def take(self, index: IntArray) -> Evidence:
        """The chosen ones."""
        chosen = tuple(self.survival[i] for i in index)
        return Evidence(
            self.batch.take(index), self.log_throughput[index], self.log_length[index], chosen, self.failed[index]
        )

    def most_telling(self) -> Evidence:
        """Itself, or where more than MAX_MEASURED were measured those that matter most for what comes next."""
        measured = self.measured
        if len(measured) <= MAX_MEASURED:
            return self
        third = MAX_MEASURED // 3
        best = measured[np.argsort(-self.log_throughput[measured], kind="stable")][:third]
        spread = np.linspace(0, len(measured) - 1, MAX_MEASURED - 2 * third).astype(int)
        kept = np.unique(np.concatenate([best, measured[-third:], measured[spread]]))
        return self.take(kept)


def gather(encoding: Encoding, own: Sequence[Observation], earlier: Sequence[Observation] = ()) -> Evidence:
    """The observations that the space can express; `earlier`: of other studies on the same host."""
    everything = [*own, *earlier]
    foreign = np.array([False] * len(own) + [True] * len(earlier), dtype=bool)
    batch, where = encoding.encode([o.config for o in everything], foreign)
    seen = [everything[i] for i in where]
    return Evidence(
        batch,
        _logarithms([None if o.failed else o.throughput for o in seen]),
        _logarithms([_length(o) if not o.failed else None for o in seen]),
        tuple(None if o.failed else o.survival for o in seen),
        np.array([o.failed for o in seen], dtype=bool),
    )


def _length(observation: Observation) -> float | None:
    if observation.accept_length is None and observation.survival is not None:
        return 1 + sum(observation.survival)
    return observation.accept_length


def _logarithms(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else np.log(value) for value in values], dtype=float)
