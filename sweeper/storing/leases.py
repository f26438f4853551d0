"""Leases: which worker launches which trial, and how the others know that it lives.

A lease is a row with an owner and a time of the database's own clock; no clocks of two machines are compared. A
thread with a connection of its own renews the worker's leases. One that is not renewed for `lease_s` seconds is
over, and whoever claims it next has it: in one statement, so exactly once. Its former owner finds that out before
it writes.
"""

from __future__ import annotations

import datetime
import json
import platform
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from launchers.clock import SystemClock
from sweeper.errors import SpecsweepError
from sweeper.interrupts import ask_this_process

_BEATS = 4
"""How often a lease is renewed before it would be over."""

_TABLE = """
CREATE TABLE IF NOT EXISTS specsweep_leases (
    study_id integer NOT NULL, name text NOT NULL, owner text NOT NULL, host text NOT NULL, place text NOT NULL,
    expires_at timestamptz NOT NULL, PRIMARY KEY (study_id, name))
"""
_EXPIRY = "clock_timestamp() + make_interval(secs => :lease_s)"
_CLAIM = f"""
INSERT INTO specsweep_leases AS held (study_id, name, owner, host, place, expires_at)
VALUES (:study_id, :name, :owner, :host, :place, {_EXPIRY})
ON CONFLICT (study_id, name) DO UPDATE
SET owner = excluded.owner, host = excluded.host, place = excluded.place, expires_at = excluded.expires_at
WHERE held.owner = excluded.owner OR held.expires_at <= clock_timestamp()
RETURNING 1
"""
_RENEW = f"UPDATE specsweep_leases SET expires_at = {_EXPIRY} WHERE study_id = :study_id AND owner = :owner"
_ALL = """
SELECT name, owner, host, place, expires_at > clock_timestamp() AS lives,
       extract(epoch FROM expires_at - clock_timestamp())::float AS left_s
FROM specsweep_leases WHERE study_id = :study_id ORDER BY name
"""
_REQUEST = 'SELECT value_json FROM study_user_attributes WHERE study_id = :study_id AND "key" = :name'
_DROP = "DELETE FROM specsweep_leases WHERE study_id = :study_id AND owner = :owner AND name = :name"
_DROP_ALL = "DELETE FROM specsweep_leases WHERE study_id = :study_id AND owner = :owner"
_LOSE = """
UPDATE specsweep_leases SET owner = ''
WHERE study_id = :study_id AND name LIKE :names AND owner <> '' AND expires_at <= clock_timestamp()
"""
_DROP_LOST = "DELETE FROM specsweep_leases WHERE study_id = :study_id AND name LIKE :names AND owner = ''"


WORKER = "worker:"
"""What the names of the leases begin with by which workers are known."""

STOP_REQUEST = "stop_request"
"""The fact of a study by which all its workers are asked to stop: JSON that differs with each request."""


class LeaseLost(SpecsweepError):
    """Another worker has taken the launch over: nothing of it may be written any more."""


@dataclass(frozen=True)
class Worker:
    """One process that works on a study. `id`: its host's name and a random word.

    `place`: which real host that is; two that give their hosts the same name differ in it.
    """

    id: str
    host: str
    place: str

    @classmethod
    def new(cls, host: str, destination: str = "") -> Worker:
        """A worker of this process. `destination`: how its host is reached; empty: it is this machine."""
        place = f"ssh {destination}" if destination else f"machine {platform.node()}"
        return cls(f"{host}-{secrets.token_hex(4)}", host, place)


@dataclass(frozen=True)
class Lease:
    """A row, as of the moment it was read. `left_s`: until it is over, below 0 when it is.

    `owner`: empty for a lease that its owner has lost.
    """

    name: str
    owner: str
    host: str
    place: str
    lives: bool
    left_s: float


class Leases(Protocol):
    """The leases of one study, as one worker sees them. Raises what the storage raises."""

    def claim(self, name: str) -> bool:
        """Whether the lease is now the worker's: it was free, over, or its own."""

    def owns(self, name: str) -> bool:
        """Whether nobody has taken the worker's lease, be it over or not."""

    def drop(self, name: str) -> None:
        """End one lease of the worker."""

    def all(self) -> tuple[Lease, ...]:
        """Every lease of the study, those that are over too."""

    def lose_those_over(self, prefix: str) -> None:
        """Take leases that are over, and whose names begin so, from their owners, in one statement.

        A worker that renews its lease at the same moment either has it after that, or finds that it has not.
        """

    def drop_lost(self, prefix: str) -> None:
        """Forget leases that were lost and whose names begin so."""

    def drop_all_of(self, owner: str) -> None:
        """End all leases of a worker, which is known to be gone."""

    def stop_request(self) -> str:
        """What `specsweep stop` last wrote for all workers of the study; empty when it never did."""


class SharedLeases:
    """Leases in the study's database, through the connection that the study is written through."""

    def __init__(self, engine: Engine, study_id: int, worker: Worker, lease_s: float) -> None:
        self._engine = engine
        self._row = {
            "study_id": study_id,
            "owner": worker.id,
            "host": worker.host,
            "place": worker.place,
            "lease_s": lease_s,
        }

    def make_table(self) -> None:
        """Make the table if there is none; only while nobody else does."""
        with self._engine.begin() as connection:
            connection.execute(text(_TABLE))

    def claim(self, name: str) -> bool:
        """Compare and set, in one statement."""
        with self._engine.begin() as connection:
            return connection.scalar(text(_CLAIM), {**self._row, "name": name}) is not None

    def owns(self, name: str) -> bool:
        """Whether the row still names the worker."""
        return any(lease.name == name and lease.owner == self._row["owner"] for lease in self.all())

    def drop(self, name: str) -> None:
        """Delete the row, if it is the worker's."""
        self._run(_DROP, name=name)

    def all(self) -> tuple[Lease, ...]:
        """The rows."""
        with self._engine.connect() as connection:
            return tuple(Lease(**row) for row in connection.execute(text(_ALL), self._row).mappings())

    def lose_those_over(self, prefix: str) -> None:
        """Clear the rows' owners."""
        self._run(_LOSE, names=f"{prefix}%")

    def drop_lost(self, prefix: str) -> None:
        """Delete the rows."""
        self._run(_DROP_LOST, names=f"{prefix}%")

    def drop_all_of(self, owner: str) -> None:
        """Delete the rows."""
        self._run(_DROP_ALL, owner=owner)

    def stop_request(self) -> str:
        """The study's fact, as text."""
        with self._engine.connect() as connection:
            return connection.scalar(text(_REQUEST), {**self._row, "name": STOP_REQUEST}) or ""

    def renew(self) -> datetime.datetime:
        """Put off the end of all that the worker has; the database's clock. A lease that was taken stays taken."""
        with self._engine.begin() as connection:
            connection.execute(text(_RENEW), self._row)
            now: datetime.datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        return now.astimezone(datetime.UTC)

    def _run(self, statement: str, **values: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(text(statement), {**self._row, **values})


def living_workers(engine: Engine, study_id: int) -> tuple[Lease, ...]:
    """The leases of the study's workers that are heard of, whoever they are; none where nobody ever shared it."""
    with engine.connect() as connection:
        if connection.scalar(text("SELECT to_regclass('specsweep_leases')")) is None:
            return ()
        rows = connection.execute(text(_ALL), {"study_id": study_id}).mappings()
        return tuple(lease for row in rows if (lease := Lease(**row)).lives and lease.name.startswith(WORKER))


class DatabaseClock:
    """The database's clock: moments from several machines can be compared. Durations are this machine's."""

    def __init__(self) -> None:
        self._own = SystemClock()
        self._ahead_s = 0.0

    def adjust(self, now: datetime.datetime) -> None:
        """It is `now`, according to the database."""
        self._ahead_s = now.timestamp() - self._own.monotonic_s()

    def monotonic_s(self) -> float:
        """This machine's."""
        return self._own.monotonic_s()

    def now(self) -> datetime.datetime:
        """The database's, in UTC."""
        return datetime.datetime.fromtimestamp(self._ahead_s + self._own.monotonic_s(), datetime.UTC)

    def boottime_s(self) -> float:
        """This machine's."""
        return self._own.boottime_s()

    def zone(self) -> datetime.tzinfo:
        """This machine's."""
        return self._own.zone()

    def sleep(self, seconds: float) -> None:
        """This machine's."""
        self._own.sleep(seconds)


@contextmanager
def renewed(leases: SharedLeases, clock: DatabaseClock, lease_s: float, known_request: str) -> Iterator[None]:
    """Renew `leases`, which have a connection of their own and were renewed once, from a thread while open.

    A request to stop that is another than `known_request` is handed on.

    Without a connection that is simply tried again: a lease that nobody has taken meanwhile is still the worker's.
    """
    ended = threading.Event()
    known = known_request

    def beat() -> None:
        nonlocal known
        while not ended.wait(lease_s / _BEATS):
            try:
                clock.adjust(leases.renew())
                if (asked := leases.stop_request()) != known:
                    known = asked
                    ask_this_process(now=bool(json.loads(asked)["now"]))
            except SQLAlchemyError:
                ended.wait(min(1.0, lease_s / _BEATS))

    thread = threading.Thread(target=beat, name="leases", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=5)
