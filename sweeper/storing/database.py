"""The database of a study: the lock under which its workers write, and what is done when it goes away.

Two kinds are known. An SQLite file belongs to one process. A PostgreSQL database is shared: whoever asks or tells
holds a lock on the study, and holds it by the very connection that Optuna writes through. A worker that was
suspended too long has lost that connection to the server's `idle_session_timeout`, and cannot write a word.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol, TypeVar

from sqlalchemy import Engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from launchers.clock import Clock, SystemClock
from sweeper.storing.addresses import is_shared
from sweeper.storing.connecting import connect
from sweeper.storing.losses import LockLost, done_again, is_lost, was_never_reached

Result = TypeVar("Result")

LOCK_IDLE_S = 60.0
"""Who holds the lock on a study and says nothing for so long loses it: longer than any proposal takes."""

HURRIED_S = 5.0
"""How long a lost connection is tried again once a person or the system wants the end now."""

_LOOK_S = 0.1
_OLDEST = 140000
"""PostgreSQL 14 is the first that has idle_session_timeout."""


class Database(Protocol):
    """What a study's store needs of its database."""

    say: Callable[[str], None]
    is_hurried: Callable[[], bool]

    @property
    def is_shared(self) -> bool:
        """Whether several processes may work on a study in it."""

    def exclusively(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, during which no other worker on the study asks or tells. May be nested."""

    def patiently(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, which is done again when the connection was lost: twice must be as once."""

    def connection(self) -> int:
        """The number of the connection that is in use, looked at now. Behind another one may be another server."""


class FileDatabase:
    """SQLite: one process, no lock but the file's own."""

    is_shared = False

    def __init__(self) -> None:
        self.say: Callable[[str], None] = _say_nothing
        self.is_hurried: Callable[[], bool] = _never

    def exclusively(self, work: Callable[[], Result]) -> Result:
        """There is nobody else."""
        return work()

    def patiently(self, work: Callable[[], Result]) -> Result:
        """There is no connection to lose."""
        return work()

    def connection(self) -> int:
        """A file is always the same."""
        return 0


class SharedDatabase:
    """PostgreSQL. `engine`: Optuna's own, with one connection; only one thread uses it.

    A lost connection is tried again for `reconnect_s` seconds, or HURRIED_S while `is_hurried`; then the error is
    raised as it came.
    """

    is_shared = True

    def __init__(self, engine: Engine, study: str, reconnect_s: float, clock: Clock | None = None) -> None:
        self.engine = engine
        self.say: Callable[[str], None] = _say_nothing
        self.is_hurried: Callable[[], bool] = _never
        self._key = int.from_bytes(hashlib.sha256(f"specsweep:{study}".encode()).digest()[:8], "big", signed=True)
        self._reconnect_s = reconnect_s
        self._clock = clock or SystemClock()
        self._fence = _Fence()
        event.listen(engine, "connect", self._fence.count)
        event.listen(engine, "checkout", self._fence.require)
        weakref.finalize(self, engine.dispose)

    def exclusively(self, work: Callable[[], Result]) -> Result:
        """The result of `work` under the lock; done again from the start when lock and connection were lost.

        Raises what the storage raises, after `reconnect_s` seconds without a connection.
        """
        if self._fence.holder is not None:
            return work()
        return self.patiently(lambda: self._locked(work))

    def patiently(self, work: Callable[[], Result]) -> Result:
        """The result of `work`; done again when the connection was lost, unless that lost the lock too."""
        if self._fence.holder is not None:
            return work()
        return done_again(work, is_lost, self._patience_s, self.say, self._clock)

    def _patience_s(self) -> float:
        return min(HURRIED_S, self._reconnect_s) if self.is_hurried() else self._reconnect_s

    def connection(self) -> int:
        """How many were made until now; one that is lost is replaced first. Raises what that raises."""
        with self.engine.connect():
            return self._fence.num_made

    def _locked(self, work: Callable[[], Result]) -> Result:
        while not self._take():
            self._clock.sleep(_LOOK_S)
        try:
            return work()
        finally:
            self._free()

    def _take(self) -> bool:
        with self.engine.begin() as connection:
            if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": self._key}):
                return False
            connection.execute(text(f"SET idle_session_timeout = '{LOCK_IDLE_S:.0f}s'"))
            holder = connection.connection.dbapi_connection
        self._fence.holder = holder
        return True

    def _free(self) -> None:
        """Unlock. Without the connection there is nothing to unlock: the server has done it."""
        try:
            with suppress(SQLAlchemyError), self.engine.begin() as connection:
                connection.execute(text("SET idle_session_timeout = 0"))
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": self._key})
        finally:
            self._fence.holder = None


class _Fence:
    """Lets nothing be written through a new connection in the place of the one that holds the lock, `holder`.

    `num_made`: connections that were made so far.
    """

    def __init__(self) -> None:
        self.holder: object = None
        self.num_made = 0

    def count(self, *_: object) -> None:
        """There is one more."""
        self.num_made += 1

    def require(self, connection: object, *_: object) -> None:
        """Raises LockLost."""
        if self.holder is not None and connection is not self.holder:
            raise LockLost("the connection that held the lock on the study was lost")


@contextmanager
def being_opened(url: str) -> Iterator[None]:
    """Only one process at a time makes tables in a shared database. Raises what SQLAlchemy raises, ValueError.

    ValueError: the server is too old, or the database is MLflow's.
    """
    if not is_shared(url):
        yield
        return
    engine = connect(url)
    try:
        with engine.begin() as connection:
            version = int(connection.scalar(text("SHOW server_version_num")) or 0)
            if version < _OLDEST:
                raise ValueError(f"PostgreSQL {version // 10000} is too old; 14 or newer is needed")
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('specsweep: being opened'))"))
            if connection.scalar(text("SELECT to_regclass('registered_models') IS NOT NULL")):
                raise ValueError(
                    "MLflow keeps its tables there; the study needs a database (or a schema) of its own"
                )
            connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '120s'"))
            yield
    finally:
        engine.dispose()


def opened_patiently(work: Callable[[], Result], reconnect_s: float, clock: Clock | None = None) -> Result:
    """The result of `work`, which opens a storage; done again when a server that was reached went away.

    Raises what the storage raises: at once where nothing was reached, since the address may be wrong.
    """

    def passes(error: BaseException) -> bool:
        return is_lost(error) and not was_never_reached(error)

    return done_again(work, passes, lambda: reconnect_s, _say_nothing, clock or SystemClock())


def _never() -> bool:
    return False


def _say_nothing(_: str) -> None:
    """Before there is a view."""
