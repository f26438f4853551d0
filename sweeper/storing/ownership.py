"""Who works on which trial of a study: nobody else (SQLite), or several workers, each with leases (leases.py).

Asking and telling happen under the lock on the study (database.py); what is decided here holds until it is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from launchers.clock import Clock, SystemClock
from launchers.errors import HostBusy
from sweeper.deciding.sharing import Crew
from sweeper.records import TrialRecord
from sweeper.storing.connecting import connect
from sweeper.storing.database import SharedDatabase
from sweeper.storing.leases import WORKER, DatabaseClock, Lease, LeaseLost, Leases, SharedLeases, Worker, renewed
from sweeper.storing.losses import STORAGE_ERRORS
from sweeper.storing.storage import StudyStore

_LAUNCH = "launch:"


class Ownership(Protocol):
    """Which launches of a study are this worker's. Raises what the storage raises.

    `host`: the worker's; empty where nobody else works on the study.
    """

    host: str

    def crew(self, closing_host: str) -> Crew | None:
        """What the other workers do; None for a study that has no others."""

    def begin(self, trial: TrialRecord) -> int:
        """Take the next launch of a trial that nobody launches; its number, which no other worker ever had."""

    def require(self, trial_number: int, launch_number: int) -> None:
        """Raises LeaseLost when another worker has taken the launch over."""

    def end(self, trial_number: int, launch_number: int) -> None:
        """The launch is over, for this worker."""

    def keeps(self, what: str) -> bool:
        """Whether it is for this worker to do `what`, which one does for all; it then stays so while it lives."""

    def asked_to_stop(self) -> bool:
        """Whether `specsweep stop` asked all workers to end, since this one began."""


class Sole:
    """One process alone: every launch is its own."""

    host = ""

    def crew(self, closing_host: str) -> Crew | None:
        """There are no others."""
        return None

    def begin(self, trial: TrialRecord) -> int:
        """The number after the last one that was recorded."""
        return _next_number(trial, ())

    def require(self, trial_number: int, launch_number: int) -> None:
        """Nobody takes anything over."""

    def end(self, trial_number: int, launch_number: int) -> None:
        """Nothing was taken."""

    def keeps(self, what: str) -> bool:
        """Who else?"""
        return True

    def asked_to_stop(self) -> bool:
        """A single process gets a signal."""
        return False


class Shared:
    """One of several workers."""

    def __init__(self, leases: Leases, worker: Worker, say: Callable[[str], None]) -> None:
        self.host = worker.host
        self._leases = leases
        self._worker = worker
        self._say = say
        self._known_request = ""

    def join(self) -> None:
        """Be known as a worker. Raises HostBusy when another machine's host has the same name.

        The host's lock is held, so an earlier worker of this very host is dead: its leases end at once.
        """
        for lease in self._leases.all():
            if not lease.name.startswith(WORKER) or lease.host != self._worker.host:
                continue
            if lease.place == self._worker.place:
                self._leases.drop_all_of(lease.owner)
            elif lease.lives:
                raise HostBusy(
                    f"host {lease.host!r} works on this study already and is another one ({lease.place}; "
                    f"this is {self._worker.place}). Give this one a name of its own: host.name=NAME. "
                    f"If that one has just died, its lease is over in {max(lease.left_s, 0):.0f} s",
                    lease.owner,
                )
        self._known_request = self._leases.stop_request()
        self._leases.lose_those_over(WORKER)
        self._leases.drop_lost(WORKER)
        self._be_known()

    def _be_known(self) -> None:
        self._leases.claim(f"{WORKER}{self._worker.id}")

    def leave(self) -> None:
        """End all that the worker has: others need not wait for the end of its leases."""
        self._leases.drop_all_of(self._worker.id)

    def crew(self, closing_host: str) -> Crew | None:
        """Launches whose lease is over are nobody's from now on; all others are their owners'."""
        self._be_known()
        self._leases.lose_those_over(_LAUNCH)
        leases = self._leases.all()
        others = [lease for lease in leases if lease.owner not in ("", self._worker.id)]
        return Crew(
            host=self._worker.host,
            busy=frozenset(numbers[0] for lease in others if (numbers := _launch_of(lease))),
            closing_host=closing_host,
            is_closing=any(n.name.startswith(WORKER) and n.host == closing_host and n.lives for n in leases),
        )

    def begin(self, trial: TrialRecord) -> int:
        """A number after all that were recorded or begun. Raises LeaseLost when that one was taken meanwhile.

        What a dead worker began keeps its number: should it wake up, nothing it writes is in anybody's way.
        """
        begun = {
            n: numbers[1] for n in self._leases.all() if (numbers := _launch_of(n)) and numbers[0] == trial.number
        }
        number = _next_number(trial, begun.values())
        if not self._leases.claim(_name(trial.number, number)):
            raise LeaseLost(f"trial {trial.number}: launch {number} was taken by another worker")
        for lease in begun:
            if not lease.owner and not any(other.owner for other in begun):  # else somebody has it already
                self._say(f"trial {trial.number} is taken over from host {lease.host}: its worker's lease is over")
        return number

    def require(self, trial_number: int, launch_number: int) -> None:
        """Whether the lease is over does not matter while nobody has taken it."""
        if not self._leases.owns(_name(trial_number, launch_number)):
            raise LeaseLost(
                f"trial {trial_number}: launch {launch_number} was taken over by another worker: this one did "
                "not renew its lease in time, or a server answers now that had not received it; nothing of the "
                "launch is written"
            )

    def end(self, trial_number: int, launch_number: int) -> None:
        """Whoever asks next may have the trial, if it is not settled."""
        self._leases.drop(_name(trial_number, launch_number))
        self._leases.drop_lost(f"{_LAUNCH}{trial_number}:")

    def keeps(self, what: str) -> bool:
        """Whoever claims it first, until that worker is gone."""
        return self._leases.claim(f"one:{what}")

    def asked_to_stop(self) -> bool:
        """An earlier request was for the workers of then."""
        return self._leases.stop_request() != self._known_request


@contextmanager
def at_work(store: StudyStore, worker: Worker, lease_s: float) -> Iterator[tuple[Ownership, Clock]]:
    """Work on a study as `worker`, whose host is held: its ownership, and the clock that all its workers share.

    Raises HostBusy. At the end the worker's leases are given up, if the database can be reached.
    """
    database = store.database
    if not isinstance(database, SharedDatabase):
        yield Sole(), SystemClock()
        return
    leases = SharedLeases(database.engine, store.optuna._study_id, worker, lease_s)
    shared, clock = Shared(leases, worker, lambda text: database.say(text)), DatabaseClock()
    beating = connect(database.engine.url)
    try:
        database.exclusively(leases.make_table)
        database.exclusively(shared.join)
        beats = SharedLeases(beating, store.optuna._study_id, worker, lease_s)
        database.patiently(lambda: clock.adjust(beats.renew()))
        with renewed(beats, clock, lease_s, database.patiently(beats.stop_request)):
            yield shared, clock
    finally:
        beating.dispose()
        with suppress(*STORAGE_ERRORS):
            shared.leave()


def still_there(trials: Sequence[TrialRecord], number: int) -> TrialRecord:
    """The trial of that number. Raises LeaseLost when a server answers now that had not received it."""
    for trial in trials:
        if trial.number == number:
            return trial
    raise LeaseLost(f"trial {number} is not in the study that answers now: what is missing is measured again")


def _name(trial_number: int, launch_number: int) -> str:
    return f"{_LAUNCH}{trial_number}:{launch_number}"


def _launch_of(lease: Lease) -> tuple[int, int] | None:
    """Trial and launch number of a launch's lease; None for any other lease."""
    kind, _, rest = lease.name.partition(":")
    trial, _, launch = rest.partition(":")
    return (int(trial), int(launch)) if f"{kind}:" == _LAUNCH else None


def _next_number(trial: TrialRecord, begun: Collection[int]) -> int:
    return 1 + max([*(launch.launch_number for launch in trial.launches), *begun], default=-1)
