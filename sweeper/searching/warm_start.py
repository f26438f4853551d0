"""What earlier studies on the same host say to a new one.

A study that several hosts have shared speaks for each of them: what they measured is put on one scale, that of the
host which measured its baseline first. So all workers of the new study hear the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from sweeper.deciding.hosts import measured_on, on_scale_of
from sweeper.errors import ConfigError
from sweeper.fingerprint import FACTS, IMPORTED, Fingerprint
from sweeper.records import TrialRecord
from sweeper.samplers.physics import Observation
from sweeper.searching.speculation import Physics
from sweeper.spec import StudySpec
from sweeper.storing.damage import left_out
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_facts import own_settings

_HOST = "host.name"
_LOAD = ("workload.concurrency", "workload.request_rate", "workload.temperature")
_MUST_AGREE = ("engine.", "host.", "model.", "objective", *_LOAD)
"""Beginnings of what step times, acceptance and the value itself depend on. The prompts may be others."""

_SET = re.compile(r"(engine|space)\.(flags\.|env\.)?(.+)")


def earlier_observations(
    spec: StudySpec, physics: Physics, current: Fingerprint, objective: str
) -> tuple[tuple[Observation, ...], list[str]]:
    """The observations of the studies in `study.warm_start`, and a line for each of them.

    Raises ConfigError that names, for each study that cannot be used, what is missing or what differs.
    """
    mistakes: list[str] = []
    notes: list[str] = []
    found: list[Observation] = []
    for name in spec.warm_start:
        store = StudyStore.of(spec, name=name)
        trials = store.readable()
        theirs = _theirs(store, trials, current.get(_HOST, ""))
        if lines := differences(theirs, current):
            mistakes += [f"study.warm_start: {name!r} cannot be used: {line}" for line in lines]
            continue
        first = next(iter(measured_on(trials, objective)), "")
        seen = [physics.observe_record(trial, objective) for trial in on_scale_of(trials, objective, first)]
        usable = [observation for observation in seen if observation is not None]
        notes.append(f"warm start: {len(usable)} configurations that {name} has tried")
        notes += [f"warm start: {line}" for line in left_out(name, store.damages())]
        if untold := _untold(theirs, current):
            notes.append(f"warm start: {name} was imported and does not tell {untold}: taken to be as here")
        found += usable
    if mistakes:
        raise ConfigError(mistakes)
    return tuple(found), notes


def _theirs(store: StudyStore, trials: Sequence[TrialRecord], host: str) -> Fingerprint:
    """The fingerprint of another study on this host; with the hosts that it was on, where this is none of them."""
    common: Fingerprint = store.texts("fingerprint")
    if not store.database.is_shared or IMPORTED in common:
        return common
    hosts = sorted({launch.host for trial in trials for launch in trial.launches})
    return {**common, _HOST: ", ".join(hosts), **own_settings(store, host)}


def differences(theirs: Fingerprint, ours: Fingerprint) -> list[str]:
    """What forbids to learn from another study, one line each.

    What is read from the host is compared where both know it, and so is everything that an imported study does not
    tell: who names it vouches for that. A flag that either study searches differs by nature.
    """
    searched = _searched(theirs) | _searched(ours)
    return [
        f"{path} was {theirs.get(path, '(absent)')} there and is {ours.get(path, '(absent)')} here"
        for path in sorted({*theirs, *ours})
        if path.startswith(_MUST_AGREE)
        and theirs.get(path) != ours.get(path)
        and not _is_incomparable(path, theirs, ours, searched)
    ]


def _is_incomparable(path: str, theirs: Fingerprint, ours: Fingerprint, searched: Collection[str]) -> bool:
    if IMPORTED in theirs and path not in theirs:
        return True
    if path.startswith((*FACTS, "host.files.")):
        return path not in theirs or path not in ours
    found = _SET.fullmatch(path)
    return found is not None and found[1] == "engine" and bool(found[2]) and found[3] in searched


def _untold(theirs: Fingerprint, ours: Fingerprint) -> str:
    """What of the most telling settings an imported study does not tell; empty when it does, or was measured."""
    told = ("engine.version", "host.name", "model.name", "workload.concurrency")
    return ", ".join(path for path in told if path in ours and path not in theirs) if IMPORTED in theirs else ""


def _searched(fingerprint: Mapping[str, str]) -> set[str]:
    """The names of the flags and variables that a study searches."""
    found: Sequence[re.Match[str] | None] = [_SET.fullmatch(path) for path in fingerprint]
    return {match[3] for match in found if match is not None and match[1] == "space"}
