"""What launches say of the objective: all are asked after each launch, so it is drawn from a record once."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import NamedTuple

from sweeper.deciding.drift import Drift
from sweeper.deciding.launches import usable
from sweeper.records import LaunchRecord, Purpose, TrialRecord


class Value(NamedTuple):
    """The value of a launch that has one.

    `scatter`: the squares of what the logarithms of its passes differ from their mean by, summed; and how many
    passes.
    """

    launch: LaunchRecord
    value: float
    at: datetime.datetime
    confirms: bool
    scatter: tuple[float, int]

    def corrected(self, drift: Drift) -> float:
        """As it would have been at the first launch of the baseline."""
        return self.value / drift.factor(self.at)


def values_of(trial: TrialRecord, objective: str) -> tuple[Value, ...]:
    """The values of the trial's measured launches, oldest first; a launch without one is left out."""
    known: tuple[Value, ...] | None = trial.drawn.get(objective)
    if known is None:
        launches = [launch for launch in trial.measured if usable(launch, objective)]
        known = trial.drawn[objective] = tuple([_value(launch, objective) for launch in launches])
    return known


def mean_of(trial: TrialRecord, objective: str) -> float | None:
    """As `TrialRecord.mean`: of all measured launches, estimates among them."""
    values = values_of(trial, objective)
    if not values or len(values) < len(trial.measured):
        return trial.mean(objective)
    return sum([value.value for value in values]) / len(values)


def _value(launch: LaunchRecord, objective: str) -> Value:
    return Value(
        launch=launch,
        value=launch.metrics[objective],
        at=launch.started_at,
        confirms=launch.purpose is Purpose.CONFIRM,
        scatter=_scatter(launch.repeat_throughputs),
    )


def _scatter(rates: Sequence[float]) -> tuple[float, int]:
    logs = [math.log(rate) for rate in rates if rate > 0]
    mean = math.fsum(logs) / len(logs) if logs else 0.0
    return sum((value - mean) ** 2 for value in logs), len(logs)
