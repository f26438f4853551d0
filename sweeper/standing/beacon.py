"""What a running sweep does at the moment, in a small file beside the study.

Only the process itself knows its phase. It writes that down when it changes: whole or not at all, bounded, with
who it is, so that nobody believes the file of a process that is gone. A file that cannot be written stops nothing.
"""

from __future__ import annotations

import datetime
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from launchers.clock import Clock
from sweeper.deciding.plan import Progress
from sweeper.records import LaunchRecord, Proposal, Record, RequestResult
from sweeper.spec import ServerConfig
from sweeper.standing.eta import eta_of
from sweeper.standing.model import Lag, Left, Now
from sweeper.standing.phases import PhaseTimes
from sweeper.standing.process import ProcessId, is_alive, this_process
from sweeper.tally import Tally

MAX_BYTES = 65_536
MAX_FILES = 64


class Note(Record):
    """The content of one file. `now.is_alive` is found out by who reads it."""

    process: ProcessId
    now: Now
    left: Left | None = None
    mlflow: Lag | None = None


class Beacon:
    """A view that keeps the file. `worker`: names it among those of the same study; at most one process has it.

    Use as a context manager: at the end the phase is taken out, what is left and MLflow's lag stay.
    """

    def __init__(self, folder: Path, study: str, worker: str, clock: Clock, objective: str) -> None:
        self._path = folder / f"{study}-status" / f"{re.sub(r'[^A-Za-z0-9._-]', '_', worker)[:80]}.json"
        self._worker = worker
        self._clock = clock
        self._tally = Tally(objective)
        self._phases = PhaseTimes()
        self._phase_began_at: datetime.datetime | None = None
        self._process = this_process()
        self._left: Left | None = None
        self._lag: Lag | None = None

    def __enter__(self) -> Beacon:
        """Write who works on the study, before anything of it is known."""
        self._enter("opening the study")
        return self

    def __exit__(self, *_: object) -> None:
        """The process does nothing for the study any more."""
        self._tally.proposal = None
        self._enter("")

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None:
        """Write where the sweep stands."""
        self._tally.baseline = baseline
        self._stand(progress)
        self._enter("between launches")

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        """Write which launch it is."""
        self._tally.begin(proposal, progress)
        self._stand(progress)
        self._enter("starting")

    def phase(self, name: str) -> None:
        """Write the phase."""
        self._tally.enter(name)
        self._enter(self._tally.phase)

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        """Not worth a file."""

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        """Write where the sweep stands now."""
        self._tally.end(record, progress)
        self._tally.proposal = None
        self._stand(progress)
        self._enter("between launches")

    def synced(self, behind: int, error: str) -> None:
        """Write how far MLflow is behind."""
        self._lag = Lag(behind=behind, error=error[:300], at=self._clock.now())
        self._write()

    def notice(self, text: str) -> None:
        """Not for this file."""

    def _stand(self, progress: Progress) -> None:
        eta, now = eta_of(progress), self._clock.now()
        left_s = progress.night_left_s
        self._left = Left(
            at=now,
            trials_total=progress.trials_total,
            launches=progress.launches_left,
            eta_s=eta.mean_s if eta else None,
            low_s=eta.low_s if eta else None,
            high_s=eta.high_s if eta else None,
            deadline_at=None if left_s is None else now + datetime.timedelta(seconds=left_s),
        )

    def _enter(self, phase: str) -> None:
        at_s = self._clock.monotonic_s()
        if phase != self._phases.name or not phase:
            self._phase_began_at = self._clock.now() if phase else None
        if phase:
            self._phases.enter(phase, at_s)
        else:
            self._phases.leave(at_s)
        self._write()

    def _write(self) -> None:
        proposal = self._tally.proposal
        now = Now(
            worker=self._worker,
            host=self._process.machine,
            pid=self._process.pid,
            is_alive=None,
            written_at=self._clock.now(),
            trial=proposal.trial_number if proposal else None,
            launch=proposal.launch_number if proposal else None,
            purpose=proposal.purpose.value if proposal else "",
            title=self._tally.title(proposal)[:300] if proposal else "",
            phase=self._phases.name,
            phase_began_at=self._phase_began_at,
            expected_s=self._phases.expected_s,
        )
        note = Note(process=self._process, now=now, left=self._left, mlflow=self._lag)
        with suppress(OSError):
            _replace(self._path, note.model_dump_json())


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def notes(folder: Path, study: str) -> list[Note]:
    """What the study's processes wrote last, the newest first; what cannot be read is left out.

    `now.is_alive` says whether that very process still runs.
    """
    found = list(_readable(folder / f"{study}-status"))
    return sorted(found, key=lambda note: note.now.written_at, reverse=True)


def _readable(folder: Path) -> Iterator[Note]:
    for path in sorted(folder.glob("*.json"))[:MAX_FILES]:
        with suppress(OSError, ValidationError):
            with path.open("rb") as file:
                note = Note.model_validate_json(file.read(MAX_BYTES))
            alive = is_alive(note.process)
            yield note.model_copy(update={"now": note.now.model_copy(update={"is_alive": alive})})
