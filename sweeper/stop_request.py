"""Asks the processes that work on a study to end, and says which of them still do."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from sweeper.spec import StudySpec
from sweeper.standing.asking import ask_to_end
from sweeper.standing.beacon import Note, notes
from sweeper.storing.database import SharedDatabase
from sweeper.storing.leases import STOP_REQUEST, WORKER, living_workers
from sweeper.storing.storage import StudyStore


@dataclass(frozen=True)
class AtWork:
    """One process that works on the study. `doing`: in words, where it says so; `pid` 0: on another machine."""

    worker: str
    host: str
    pid: int = 0
    doing: str = ""


class StopRequest:
    """A request to all processes of one study; asked again until each has heard it."""

    def __init__(self, study: StudySpec, store: StudyStore | None, *, now: bool) -> None:
        self._study = study
        self._store = store
        self._now = now
        self._told: set[int] = set()
        self._others_told = False

    def at_work(self) -> tuple[AtWork, ...]:
        """Who works on the study at the moment. Raises what the storage raises."""
        here = tuple(_seen(note) for note in self._local())
        known = {each.worker for each in here}
        return (*here, *(each for each in self._elsewhere() if each.host not in known))

    def ask(self) -> None:
        """Ask whoever has not been asked yet. Raises what the storage raises, and PermissionError."""
        for note in self._local():
            if note.process.pid not in self._told and ask_to_end(note.process, now=self._now):
                self._told.add(note.process.pid)
        if self._store is not None and not self._others_told and self._elsewhere():
            self._store.set_fact(STOP_REQUEST, {"id": secrets.token_hex(8), "now": self._now})
            self._others_told = True

    def _local(self) -> list[Note]:
        """The notes of this machine's other processes that live."""
        found = notes(Path(self._study.dir), self._study.name)
        return [note for note in found if note.now.is_alive and note.process.pid != os.getpid()]

    def _elsewhere(self) -> tuple[AtWork, ...]:
        """Workers of a shared database, those of this machine among them."""
        if self._store is None or not isinstance(self._store.database, SharedDatabase):
            return ()
        database, study_id = self._store.database, self._store.optuna._study_id
        leases = database.patiently(lambda: living_workers(database.engine, study_id))
        return tuple(AtWork(lease.name.removeprefix(WORKER), lease.host) for lease in leases)


def _seen(note: Note) -> AtWork:
    now = note.now
    doing = ": ".join(filter(None, [now.title, now.phase])) or "ending"
    return AtWork(now.worker, now.host, now.pid, doing)
