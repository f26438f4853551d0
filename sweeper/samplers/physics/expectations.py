"""What is expected of the flags before anything is measured, on the logarithm of the step time."""

from __future__ import annotations

import numpy as np

from sweeper.samplers.physics.all_reduce import AllReduceShift
from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.roles import FlagPrior
from sweeper.samplers.physics.space import SearchParameter, position
from sweeper.samplers.physics.step_time import relative_cost

LEFT_TO_LEARN = 0.5
"""Of a communication flag's expected effect, after its all-reduces were timed."""

_TYPICAL_COST = 0.5
"""Logarithm of what drafting adds to a step, where no server without it was measured."""


class Expectations:
    """The effects expected of one space's flags."""

    def __init__(self, encoding: Encoding, all_reduce: AllReduceShift | None = None) -> None:
        priors = [encoding.roles.flag_prior(flag) for flag in encoding.flags]
        self._all_reduce = all_reduce
        self._slower = [
            (column, code, change)
            for column, (flag, prior) in enumerate(zip(encoding.flags, priors, strict=True))
            for code, change in _changes(flag, prior, int(encoding.default_flags[column]))
        ]
        self.sizes = np.array([prior.size for prior in priors])
        if all_reduce is not None:
            self.sizes[all_reduce.columns] *= LEFT_TO_LEARN

    def slower(self, batch: Batch) -> FloatArray:
        """What single values are expected to add: [n]."""
        total = np.zeros(len(batch))
        for column, code, change in self._slower:
            total += change * (batch.flags[:, column] == code)
        return total

    def base_ms(self, batch: Batch, log_time: FloatArray) -> float:
        """Milliseconds per step of a server with default flags that does not draft, from what was measured."""
        plain = ~batch.speculative
        base = log_time - self.slower(batch)
        return float(np.exp(np.median(base[plain]) if plain.any() else np.median(base) - _TYPICAL_COST))

    def shift(self, batch: Batch, costs: FloatArray, base_ms: float) -> FloatArray:
        """All that is expected of configurations' flags, given the costs of drafting: [n]."""
        total = self.slower(batch)
        if self._all_reduce is not None:
            total += self._all_reduce.log_change(batch, relative_cost(costs, batch), base_ms)
        return total


def _changes(flag: SearchParameter, prior: FlagPrior, default: int) -> list[tuple[int, float]]:
    """The index of each value that is expected to add something, and what."""
    leaving = {code: prior.leaving for code in range(len(flag.values)) if code != default}
    named = {position(value, flag.values): change for value, change in prior.slower.items()}
    return [(code, change) for code, change in (leaving | named).items() if change]
