"""Which launches may be compared: those of their host's newest baseline's provenance; others are put aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.deciding.launches import with_launches
from sweeper.records import LaunchRecord, TrialRecord

SOURCES = frozenset({"imported_file", "imported_row", "imported_sha256"})
"""Facts of an imported launch: where its numbers were read, which says nothing of how they were measured."""


def is_imported(launch: LaunchRecord) -> bool:
    """Whether somebody else measured it: nothing can be launched beside it."""
    return not SOURCES.isdisjoint(launch.provenance)


_HARMLESS = frozenset({"specsweep_version", "workload", "model_revision"}) | SOURCES
"""Facts that are shown when they differ, but forbid no comparison: the fingerprint lets a study go on with another
one. A workload may get another name, and a model's files say more than the name of their revision."""


@dataclass(frozen=True)
class Aside:
    """A measured launch that is not compared. `differing`: fact to the baseline's value and this launch's."""

    launch: LaunchRecord
    differing: Mapping[str, tuple[str, str]]


def comparable(trials: Sequence[TrialRecord]) -> tuple[tuple[TrialRecord, ...], tuple[Aside, ...]]:
    """The trials with the launches that may be compared, and the launches that may not, in the order of `trials`.

    The measure is the newest measured launch of the baseline on the same host; without one everything of that host
    is kept. Trials of which no measured launch is left are left out. A fact that one of two launches did not write
    down is no difference.
    """
    baseline = next((trial for trial in trials if trial.is_baseline), None)
    if baseline is None or not baseline.measured:
        return tuple(trials), ()
    oldest_first = sorted(baseline.measured, key=lambda launch: launch.started_at)
    facts = {launch.host: launch.provenance for launch in oldest_first}
    kept: list[TrialRecord] = []
    aside: list[Aside] = []
    for trial in trials:
        out = [
            Aside(launch, other)
            for launch in trial.measured
            if (other := differing(facts.get(launch.host, {}), launch.provenance))
        ]
        aside += out
        launches = _without(trial.launches, out)
        if not out or any(launch.ok for launch in launches):
            kept.append(with_launches(trial, launches))
    return tuple(kept), tuple(aside)


def _without(launches: tuple[LaunchRecord, ...], out: Sequence[Aside]) -> tuple[LaunchRecord, ...]:
    if not out:
        return launches
    numbers = {found.launch.launch_number for found in out}
    return tuple(launch for launch in launches if launch.launch_number not in numbers)


def differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The facts for which two launches cannot be compared: name to both values; empty when they can be.

    `ours` and `theirs`: their provenance.
    """
    if ours is theirs:
        return {}
    return {
        name: (value, theirs[name])
        for name, value in ours.items()
        if name in theirs and theirs[name] != value and name not in _HARMLESS
    }
