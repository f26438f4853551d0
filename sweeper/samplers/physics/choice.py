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
    """gain: the relative improvement expected of each candidate itself. total: lessons included."""

    gain: FloatArray
    total: FloatArray


def weigh(knowledge: Knowledge, model: Model, batch: Batch, best: Batch, rng: np.random.Generator) -> Worth:
    """Both for each candidate; lessons only for those that might matter. The chance to start is included."""
    chance, (mean, variance) = knowledge.chance(batch), model.lead(batch, best)
    gain = chance * expected_improvement(mean, variance)
    hopes = mean + np.sqrt(variance) + np.log(chance)
    asked = np.argsort(-hopes, kind="stable")[:_NUM_ASKED]
    some = rng.integers(len(gain), size=_NUM_TRIALS)
    gainful = np.argsort(-gain, kind="stable")[:_NUM_TRIALS]
    trials = np.unique(np.concatenate([gainful, asked[:_NUM_TRIALS], some]))
    lessons = model.lessons(batch.take(asked), batch.take(trials))
    total = gain.copy()
    total[trials] += CURIOSITY * chance[trials] * value_of_lessons(mean[asked], lessons)
    return Worth(gain, total)
