"""How good a drafter has to be: one calculation, for `specsweep predict` and for the report.

Throughput is accept_length over step time. So at the step time of a configuration a rival's throughput is
reached at accept_length x (rival's throughput / its own): no unit, no clock and no concurrency enters. Both
throughputs are known as well as launches tell them: how much starts differ, and how many there were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sweeper.deciding.drift import Drift, drift_of
from sweeper.deciding.launches import usable
from sweeper.deciding.noise import Noise, corrected, noise_of
from sweeper.records import TrialRecord
from sweeper.statistics.least_squares import Interval, around
from sweeper.statistics.least_squares import Noise as ValueNoise
from sweeper.statistics.stats import exp


@dataclass(frozen=True)
class Pace:
    """How fast a trial is: the mean logarithm of the objective over `num_launches` usable launches."""

    log_value: float
    num_launches: int


@dataclass(frozen=True)
class Paces:
    """How fast trials are, and how well that is known. `trials`: all that may be compared."""

    trials: tuple[TrialRecord, ...]
    objective: str

    @cached_property
    def drift(self) -> Drift:
        """Of the host, from the baseline's launches."""
        baseline = next((trial for trial in self.trials if trial.is_baseline), None)
        return drift_of(baseline.launches, self.objective) if baseline else Drift()

    @cached_property
    def seen_noise(self) -> Noise:
        """The spreads that were seen."""
        return noise_of(self.trials, self.objective, self.drift)

    @cached_property
    def noise(self) -> ValueNoise:
        """Variance of the logarithm of one launch's value, and how well that is known."""
        spread = self.seen_noise.expected_launch
        return ValueNoise((spread.pct / 100) ** 2, spread.degrees)

    def of(self, trial: TrialRecord) -> Pace | None:
        """The trial's; None without a usable launch."""
        launches = [launch for launch in trial.measured if usable(launch, self.objective)]
        if not launches:
            return None
        logs = [math.log(corrected(launch, self.objective, self.drift)) for launch in launches]
        return Pace(math.fsum(logs) / len(logs), len(logs))

    def log_ratio(self, ours: Pace, theirs: Pace, comparisons: int = 1) -> Interval:
        """The logarithm of how much faster one is than another; as one of so many comparisons."""
        variance = self.noise.variance * (1 / ours.num_launches + 1 / theirs.num_launches)
        return around(ours.log_value - theirs.log_value, variance, self.noise.degrees, comparisons)

    def log_ratio_to_step(self, ours: Pace, log_step_s: float, step_variance: float) -> Interval:
        """The same to a server that keeps one token per step, of a step time that is known only so well."""
        variance = self.noise.variance / ours.num_launches + step_variance
        return around(ours.log_value + log_step_s, variance, self.noise.degrees)


def needed_accept_length(has: Sequence[float], log_ratio: Interval) -> Interval:
    """The accept_length at which a configuration equals a rival: 95 %, never below 1.

    `has`: lower and upper end of the accept_length that it has now. `log_ratio`: the rival over it.
    """
    low, high = has
    middle = (low + high) / 2 * exp(log_ratio.value)
    return Interval(middle, max(1.0, low * exp(log_ratio.low)), max(1.0, high * exp(log_ratio.high)))
