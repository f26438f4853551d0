"""What each candidate is worth: what it may gain itself, and what it teaches for the trials after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sweeper.samplers.physics.acquisition import expected_improvement, value_of_lessons
from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.knowledge import Knowledge
from sweeper.samplers.physics.prediction import Model

CURIOSITY = 6.0
"""What one trial teaches serves all later ones: how often it is counted, against what it gains itself."""

_NUM_ASKED = 200
_NUM_TRIALS = 60
"""Of the candidates: those that might turn out best, and those (of each kind) whose lessons are weighed."""


@dataclass(frozen=True)
class Worth:
    """What each of n candidates is worth, [n] each.

    lead, variance: over the best measured, on the logarithm. lessons: what a trial of it teaches; 0 for those that
    were not looked at. chance: to start.
    """

    lead: FloatArray
    variance: FloatArray
    lessons: FloatArray
    chance: FloatArray

    def gain(self, widening: float = 1.0) -> FloatArray:
        """The relative improvement expected of each itself. widening: what the errors are multiplied by."""
        return self.chance * expected_improvement(self.lead, widening**2 * self.variance)

    @property
    def total(self) -> FloatArray:
        """Lessons included."""
        return np.asarray(self.gain() + CURIOSITY * self.chance * self.lessons)


def weigh(knowledge: Knowledge, model: Model, batch: Batch, best: Batch, rng: np.random.Generator) -> Worth:
    """The worth of each candidate; lessons are looked at only where they might matter. best: one configuration."""
    mean, variance = model.lead(batch, best)
    worth = Worth(mean, variance, np.zeros(len(batch)), knowledge.chance(batch))
    hopes = mean + np.sqrt(variance) + np.log(worth.chance)
    asked = np.argsort(-hopes, kind="stable")[:_NUM_ASKED]
    some = rng.integers(len(batch), size=_NUM_TRIALS)
    gainful = np.argsort(-worth.gain(), kind="stable")[:_NUM_TRIALS]
    trials = np.unique(np.concatenate([gainful, asked[:_NUM_TRIALS], some]))
    lessons = model.lessons(batch.take(asked), batch.take(trials))
    worth.lessons[trials] = value_of_lessons(mean[asked], lessons)
    return worth
