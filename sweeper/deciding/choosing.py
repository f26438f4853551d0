"""What the launches say by which finalists are chosen: whoever ranks by them, ranks alike. Pure.

Confirming launches are not among them: what is decided with their help must not depend on what they will show.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from sweeper.deciding.drift import drift_of
from sweeper.deciding.noise import noise_expected_of
from sweeper.deciding.values import values_of
from sweeper.records import LaunchRecord, Purpose, TrialRecord
from sweeper.statistics.stats import Group, t_quantile

NEAR = 0.975
"""One-sided: of two equal configurations the worse one is kept with this probability."""


def choosing(trial: TrialRecord) -> list[LaunchRecord]:
    """The measured launches of the trial by which finalists are chosen."""
    return [launch for launch in trial.measured if launch.purpose is not Purpose.CONFIRM]


class Choosing:
    """The values of the choosing launches as of one and the same time: a drift of the host is taken out.

    `until`: as they were known at that moment; what came later must not change what was decided then.
    """

    def __init__(
        self, trials: Sequence[TrialRecord], objective: str, until: datetime.datetime | None = None
    ) -> None:
        known = {
            trial.number: [
                value
                for value in values_of(trial, objective)
                if not value.confirms and (until is None or value.at <= until)
            ]
            for trial in trials
        }
        drift = drift_of([value.launch for value in known.get(0, ())], objective)
        self._spread = noise_expected_of([*known.values()], drift)
        self._values = {
            number: tuple([value.corrected(drift) for value in values]) for number, values in known.items()
        }
        self._means = {
            number: math.fsum(map(math.log, values)) / len(values)
            for number, values in self._values.items()
            if values
        }

    def values(self, number: int) -> Group:
        """Those of a trial, in their order; empty when it has none."""
        return self._values.get(number, ())

    def ranked(self, numbers: Sequence[int]) -> list[int]:
        """Best first; one without a value last."""
        return sorted(numbers, key=lambda number: (-self._means.get(number, -math.inf), number))

    def near_best(self, ranked: Sequence[int]) -> list[int]:
        """Those of the `ranked` that noise cannot tell from the best, itself among them. All have a value."""
        best = ranked[0]
        return [n for n in ranked if self._means[best] - self._means[n] <= self._reach(best, n)]

    def lead(self, number: int) -> float:
        """By how much more than noise explains it is ahead of every other but the baseline, as a logarithm.

        Not above 0 where others come near it, or nothing is known of it; infinite where there are no others.
        """
        if number not in self._means:
            return 0.0
        others = self._means.keys() - {0, number}
        ahead = (self._means[number] - self._means[other] - self._reach(number, other) for other in others)
        return min(ahead, default=math.inf)

    def any_hope(self, ranked: Sequence[int]) -> bool:
        """Whether the best may be above the baseline, with all the luck that noise allows."""
        if 0 not in self._means:
            return True
        return self._means[ranked[0]] + self._reach(ranked[0], 0) > self._means[0]

    def _reach(self, one: int, other: int) -> float:
        """How far apart two equal configurations can be."""
        share = 1 / len(self._values[one]) + 1 / len(self._values[other])
        return t_quantile(NEAR, self._spread.degrees) * self._spread.pct / 100 * math.sqrt(share)
