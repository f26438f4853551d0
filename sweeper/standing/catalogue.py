"""All studies of a storage, each in a few words. A study that is damaged or of somebody else is told as such."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime

from sweeper.errors import ConfigError, SpecsweepError, StorageUnusable
from sweeper.fingerprint import IMPORTED
from sweeper.records import Record
from sweeper.spec import StudySpec
from sweeper.standing.glance import glance
from sweeper.standing.model import Best, Standing
from sweeper.storing.addresses import masked
from sweeper.storing.database import SharedDatabase
from sweeper.storing.kept_run import COMPLETE, INTERRUPTED, KeptRun, kept_runs
from sweeper.storing.leases import living_workers
from sweeper.storing.losses import STORAGE_ERRORS, reason_of
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_files import storages_of
from sweeper.text import plain

State = Literal[
    "running", "complete", "interrupted", "night over", "stopped", "imported", "empty", "foreign", "damaged"
]

_DAMAGED = (SpecsweepError, *STORAGE_ERRORS, ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""What rows raise that nobody of ours has written, or that a disk has lost."""

_OLDEST = datetime.datetime.min.replace(tzinfo=datetime.UTC)


class Entry(Record):
    """One study. `by`: who works on it now, or did last. `why`: what had to be mended, or what is wrong with it.

    `trials_total` is as the last run asked for; None when nobody kept it. `last_at`: when a launch last began or
    ended, else when the last run began. `damaged`: what cannot be read of what `status` looks at.
    """

    study: str
    storage: str
    state: State
    by: tuple[str, ...] = ()
    why: str = ""
    trials_done: int = 0
    trials_total: int | None = None
    objective: str = ""
    unit: str = ""
    baseline: float | None = None
    best: Best | None = None
    verdict: str | None = None
    verdict_kind: str | None = None
    last_at: AwareDatetime | None = None
    engine: str = ""
    model: str = ""
    damaged: tuple[str, ...] = ()


class Catalogue(Record):
    """The studies, newest first, and a line for each file that should hold some and cannot be read."""

    studies: tuple[Entry, ...]
    notes: tuple[str, ...] = ()


def catalogue(study: StudySpec, now: datetime.datetime) -> Catalogue:
    """Every study of `study.storage`; where that lies in `study.dir`, of all databases in that folder.

    Raises ConfigError when there is no storage at all, StorageUnusable when the only one cannot be opened.
    """
    storages = storages_of(study.storage, study.dir)
    if not storages.urls and not storages.notes:
        raise ConfigError([f"study.dir: there is no study in {study.dir!r} yet; `specsweep run` makes one"])
    entries: list[Entry] = []
    notes = list(storages.notes)
    for url in storages.urls:
        try:
            stores = StudyStore.each(study, url)
        except (ConfigError, StorageUnusable) as error:
            if len(storages.urls) == 1:
                raise
            notes += error.mistakes if isinstance(error, ConfigError) else [error.reason]
            continue
        entries += [_entry(store, url, study.dir, now) for store in stores]
    entries.sort(key=lambda entry: (entry.last_at or _OLDEST, entry.study), reverse=True)
    return Catalogue(studies=tuple(entries), notes=tuple(notes))


def _entry(store: StudyStore, url: str, folder: str, now: datetime.datetime) -> Entry:
    entry = Entry(study=plain(store.name), storage=masked(url), state="foreign")
    try:
        facts = store.fact("fingerprint")
        if facts is None and (harmed := store.damaged_facts()):
            return entry.model_copy(update={"state": "damaged", "why": harmed[0].text})
        if not isinstance(facts, Mapping):
            return entry.model_copy(update={"why": "was not made by specsweep, or never begun"})
        return _ours(entry, store, {str(k): str(v) for k, v in facts.items()}, glance(store, Path(folder), now))
    except _DAMAGED as error:
        why = plain(reason_of(error), 200)
        return entry.model_copy(update={"state": "damaged", "why": why})


def _ours(entry: Entry, store: StudyStore, facts: Mapping[str, str], standing: Standing) -> Entry:
    runs = kept_runs(store)
    workers = _workers(store, standing)
    done = sum(count for state, count in standing.trials.items() if state != "running")
    total = runs[0].trials_total if runs else standing.left and standing.left.trials_total
    stopped = next((run.why for run in runs[:1]), "")
    state = _state(facts, runs, standing)
    harmed = [damage.text for damage in store.damaged_facts()]
    return entry.model_copy(
        update={
            "state": "running" if workers else "damaged" if harmed else state,
            "by": workers or tuple(f"{run.host} (from {plain(run.machine)})" for run in runs),
            "why": next(iter(harmed), "" if workers else stopped),
            "damaged": standing.damaged,
            "trials_done": done,
            "trials_total": total or None,
            "objective": standing.objective,
            "unit": standing.unit,
            "baseline": standing.baseline,
            "best": standing.best,
            "verdict": standing.verdict,
            "verdict_kind": _kind(
                store.fact("verdict") or {}, is_over=not workers and state in (COMPLETE, "imported")
            ),
            "last_at": standing.last_at or next((run.began_at for run in runs[:1]), None),
            "engine": facts.get("engine.name", facts.get("engine", "")),
            "model": plain(facts.get("model.name", ""), 80),
        }
    )


def _kind(verdict: Mapping[str, object], *, is_over: bool) -> str | None:
    """What the verdict found. None before a study is over, unless fresh launches have confirmed it already."""
    return str(verdict["kind"]) if "kind" in verdict and (is_over or verdict.get("confirmed") is True) else None


def _workers(store: StudyStore, standing: Standing) -> tuple[str, ...]:
    """Who works on the study now: processes of this machine, and of a shared database all that are heard of."""
    here = {now.worker: f"{now.worker} (pid {now.pid} on {now.host})" for now in standing.now if now.phase}
    if isinstance(store.database, SharedDatabase):
        for lease in living_workers(store.database.engine, store.optuna._study_id):
            here.setdefault(lease.host, f"{lease.host} ({lease.place})")
    return tuple(plain(who) for who in here.values())


def _state(facts: Mapping[str, str], runs: Sequence[KeptRun], standing: Standing) -> str:
    """The state of a study that nobody works on."""
    if IMPORTED in facts:
        return "imported"
    if not runs and not any(standing.trials.values()):
        return "empty"
    if runs:
        return runs[0].ended or INTERRUPTED
    left = standing.left  # an older specsweep kept no runs
    return COMPLETE if standing.verdict and (left is None or not left.launches) else INTERRUPTED
