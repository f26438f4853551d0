"""Which launches count, and for what."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from sweeper.policy import is_host_fault
from sweeper.records import LaunchRecord, TrialRecord


def usable(launch: LaunchRecord, objective: str) -> bool:
    """Whether the launch has a measured objective: not an estimate, and something a ratio can be formed of."""
    return launch.failure is None and not launch.estimated and launch.metrics.get(objective, 0.0) > 0


def lost_to_host(launch: LaunchRecord) -> bool:
    """Whether it says nothing about its configuration, and is simply made again."""
    return launch.failure is not None and is_host_fault(launch.failure.kind)


def hours_between(start: datetime.datetime, end: datetime.datetime) -> float:
    """Hours from `start` to `end`."""
    return (end - start).total_seconds() / 3600


def first_pass(launch: LaunchRecord) -> Mapping[str, float]:
    """Throughput by prompt in the first pass: what a launch that ends early can be compared with."""
    return launch.first_pass_throughputs or launch.prompt_throughputs


def with_launches(trial: TrialRecord, launches: Sequence[LaunchRecord]) -> TrialRecord:
    """The trial with these of its launches; itself when they are all."""
    if len(launches) == len(trial.launches):
        return trial
    return trial.model_copy(update={"launches": tuple(launches)})
