"""How a sweep has gone: the best so far as a line, what failed last, what chance alone may show. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from sweeper.deciding.drift import drift_of
from sweeper.deciding.launches import usable
from sweeper.deciding.noise import expected_launch_noise
from sweeper.records import LaunchRecord, TrialRecord
from sweeper.statistics.stats import t_quantile

MAX_POINTS = 60
"""More are not shown in a line of text."""

MAX_FAILURES = 3

_ERROR = 0.025


def best_so_far(values: Iterable[float]) -> tuple[float, ...]:
    """The largest value up to each, thinned evenly to MAX_POINTS; the last one is always there."""
    course = tuple(itertools.accumulate(values, max))
    if len(course) <= MAX_POINTS:
        return course
    last = len(course) - 1
    return tuple(course[round(i * last / (MAX_POINTS - 1))] for i in range(MAX_POINTS))


def last_failures(trials: Iterable[TrialRecord]) -> tuple[LaunchRecord, ...]:
    """The newest launches that failed, the newest first."""
    touched = [trial for trial in trials if len(trial.measured) < len(trial.launches)]
    failed = [launch for trial in touched for launch in trial.launches if launch.failure is not None]
    return tuple(sorted(failed, key=lambda launch: launch.ended_at, reverse=True)[:MAX_FAILURES])


def luck_pct(trials: Sequence[TrialRecord], best: TrialRecord, rivals: int, objective: str) -> float | None:
    """How far above the baseline, in percent, the luckiest of so many `rivals` that equal it would seem to be.

    More happens by chance in 2.5 % of sweeps. `trials`, the baseline first: those launched again tell the noise.
    None before the baseline was measured.
    """
    counts = [sum(usable(launch, objective) for launch in trial.measured) for trial in (trials[0], best)]
    if not all(counts):
        return None
    repeated = [trial for trial in trials if trial.number in (0, best.number) or len(trial.launches) > 1]
    spread = expected_launch_noise(repeated, objective, drift_of(trials[0].launches, objective))
    reach = t_quantile(1 - _ERROR / max(1, rivals), spread.degrees) * spread.pct
    return reach * math.sqrt(sum(1 / count for count in counts))
