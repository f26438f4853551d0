"""Several hosts in one study: whose launches are compared with whose, and on which scale. Pure.

A launch is compared with the baseline of its own host. To compare it with launches of another host, its values
are multiplied by the ratio of the two hosts' baselines as of the moment of the launch, each with its drift. Hosts
whose baselines differ in more than the host itself (other GPUs, another build) are not put on one scale.
"""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.deciding.comparable import comparable, differing
from sweeper.deciding.drift import Drift, drift_of
from sweeper.deciding.launches import usable
from sweeper.deciding.noise import corrected
from sweeper.records import LaunchRecord, Purpose, TrialRecord

OF_A_HOST = frozenset({"host", "driver", "gpu_policy"})
"""Facts that belong to one host. What they change of its speed, its own baseline shows."""

_RATES = ("prompt_throughputs", "first_pass_throughputs", "class_throughputs")


@dataclass(frozen=True)
class Level:
    """How fast a host is: the objective of its baseline as of its first launch, and its drift since then.

    `facts`: provenance of the newest launch of the baseline there.
    """

    value: float
    drift: Drift
    facts: Mapping[str, str]

    def at(self, moment: datetime.datetime) -> float:
        """The baseline's objective at a moment."""
        return self.value * self.drift.factor(moment)


def measured_on(trials: Sequence[TrialRecord], objective: str) -> tuple[str, ...]:
    """The hosts that have measured the baseline, and so have a level; the one that did so first comes first."""
    return tuple(_of_baseline(trials, objective))


def levels_of(trials: Sequence[TrialRecord], objective: str) -> dict[str, Level]:
    """Host to level, for every host of `measured_on`, in its order."""
    return {host: _level(launches, objective) for host, launches in _of_baseline(trials, objective).items()}


def on_scale_of(trials: Sequence[TrialRecord], objective: str, host: str) -> tuple[TrialRecord, ...]:
    """The trials as if `host` had measured them all: what is to be compared on one scale.

    Of other hosts only launches of the search are kept, those that were launched again among them: their baselines
    are the scale, and finalists are confirmed on one host. Nothing is kept of a host without a level, or of one
    that is kept apart. A study is left as it is while only one host has a level, or `host` has none.
    """
    if len({launch.host for trial in trials for launch in trial.launches}) < 2:
        return tuple(trials)
    levels = levels_of(trials, objective)
    if len(levels) < 2 or host not in levels:
        return tuple(trials)
    ours = levels[host]
    theirs = {name: level for name, level in levels.items() if name != host and not apart(ours, level)}
    launches = {trial.number: trial.launches for trial in comparable(trials)[0]}
    scaled = []
    for trial in trials:
        kept = [
            _scaled(n, objective, ours, theirs.get(n.host)) if n.host != host else n
            for n in launches.get(trial.number, ())
            if n.host == host or not trial.is_baseline
        ]
        scaled.append(trial.model_copy(update={"launches": tuple(n for n in kept if n is not None)}))
    return tuple(scaled)


def value_to_tell(trials: Sequence[TrialRecord], objective: str, launch: LaunchRecord) -> float:
    """What the search is told of a launch: its objective on the scale of the first host with a baseline.

    As of this moment: what is learned of the hosts later does not change what was told.
    """
    value = launch.metrics[objective]
    hosts = measured_on(trials, objective)
    first = next(iter(hosts), launch.host)
    if first == launch.host or launch.host not in hosts:
        return value
    levels = levels_of(trials, objective)
    return value * levels[first].at(launch.started_at) / levels[launch.host].at(launch.started_at)


def apart(one: Level, other: Level) -> dict[str, tuple[str, str]]:
    """The facts for which two hosts are not put on one scale: name to both values; empty when they are."""
    return {n: pair for n, pair in differing(one.facts, other.facts).items() if n not in OF_A_HOST}


def scale_text(trials: Sequence[TrialRecord], objective: str, host: str) -> str:
    """How the hosts compare and whose scale is used, as a sentence; empty for a single host."""
    hosts = measured_on(trials, objective)
    if len(hosts) < 2 or host not in hosts:
        return ""
    levels = levels_of(trials, objective)
    ratios = [
        f"{name} {level.value / levels[host].value:.3f} x" if not (facts := apart(levels[host], level))
        else f"{name} is kept apart ({', '.join(f'{n}: {a} here, {b} there' for n, (a, b) in facts.items())})"
        for name, level in levels.items()
        if name != host
    ]  # fmt: skip
    return f"All values are on the scale of host {host}, by the hosts' baselines: {'; '.join(ratios)}."


def _of_baseline(trials: Sequence[TrialRecord], objective: str) -> dict[str, list[LaunchRecord]]:
    """Host to its comparable launches of the baseline."""
    by_host: dict[str, list[LaunchRecord]] = {}
    for trial in comparable([trial for trial in trials if trial.is_baseline])[0]:
        for launch in trial.measured:
            if usable(launch, objective):
                by_host.setdefault(launch.host, []).append(launch)
    return by_host


def _level(launches: Sequence[LaunchRecord], objective: str) -> Level:
    drift = drift_of(launches, objective)
    newest = max(launches, key=lambda launch: launch.started_at)
    value = statistics.geometric_mean(corrected(launch, objective, drift) for launch in launches)
    return Level(value, drift, newest.provenance)


def _scaled(launch: LaunchRecord, objective: str, ours: Level, theirs: Level | None) -> LaunchRecord | None:
    """The launch on our scale; None for one that is not put on it."""
    if theirs is None or launch.purpose is Purpose.CONFIRM:
        return None
    factor = ours.at(launch.started_at) / theirs.at(launch.started_at)
    update: dict[str, object] = {
        name: {key: rate * factor for key, rate in getattr(launch, name).items()} for name in _RATES
    }
    update["repeat_throughputs"] = tuple(rate * factor for rate in launch.repeat_throughputs)
    if objective in launch.metrics:
        update["metrics"] = {**launch.metrics, objective: launch.metrics[objective] * factor}
    return launch.model_copy(update=update)
