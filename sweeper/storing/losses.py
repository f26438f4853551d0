"""Errors of a storage: which pass by themselves, what to say of them, and the same done again until they have."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

import optuna
import psycopg
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from launchers.clock import Clock

STORAGE_ERRORS = (SQLAlchemyError, optuna.exceptions.StorageInternalError)
"""What a storage that is full, locked or gone raises in the middle of a sweep."""

Result = TypeVar("Result")

_PAUSE_S = 1.0

_RETRIED = ("08", "40", "57P", "25006", "53300", "55P03")
"""Beginnings of SQLSTATEs after which the same is tried again: a lost connection, a deadlock, a server that shuts
down or starts, a standby that does not write (yet), no place for a connection, a lock that was not free."""

_MOVED = "SQLITE_READONLY_DBMOVED"
"""SQLite says of it that the database is read-only."""


class LockLost(SQLAlchemyError):
    """The connection that held the lock on the study is gone: nothing was written after that."""


def done_again(
    work: Callable[[], Result],
    passes: Callable[[BaseException], bool],
    patience_s: Callable[[], float],
    say: Callable[[str], None],
    clock: Clock,
) -> Result:
    """The result of `work`, done again after errors that pass by themselves, for so long; then they are raised."""
    lost_at_s: float | None = None
    while True:
        try:
            result = work()
        except STORAGE_ERRORS as error:
            now_s = clock.monotonic_s()
            if not passes(error) or (lost_at_s is not None and now_s - lost_at_s >= patience_s()):
                raise
            if lost_at_s is None:
                lost_at_s = now_s
                say(f"the study's database: {reason_of(error)}; tried again for {patience_s():g} s")
            clock.sleep(_PAUSE_S)
            continue
        if lost_at_s is not None:
            say(f"the study's database is back after {clock.monotonic_s() - lost_at_s:.0f} s")
        return result


def was_never_reached(error: BaseException) -> bool:
    """Whether a connection could not be made at all: refused, no such name, no way there."""
    if isinstance(error, DBAPIError) and isinstance(driver := error.orig, psycopg.OperationalError):
        return driver.pgconn is not None or str(driver).startswith("failed to resolve host")  # psycopg 3.2
    return (cause := _cause_of(error)) is not None and was_never_reached(cause)


def is_lost(error: BaseException) -> bool:
    """Whether an error of the storage, or its cause, is a lost connection, or passes by itself like one."""
    if isinstance(error, LockLost):
        return True
    if isinstance(error, DBAPIError):
        driver = error.orig
        if error.connection_invalidated or (isinstance(driver, psycopg.OperationalError) and not driver.sqlstate):
            return True
        if isinstance(driver, psycopg.Error) and (driver.sqlstate or "").startswith(_RETRIED):
            return True
    return (cause := _cause_of(error)) is not None and is_lost(cause)


def reason_of(error: BaseException) -> str:
    """The first line of what the driver said, which holds no password."""
    while (cause := _cause_of(error)) is not None:
        error = cause
    if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorname", "") == _MOVED:
        return "the study's file was moved, replaced or deleted while it was in use"
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _cause_of(error: BaseException) -> BaseException | None:
    """What an error of the storage comes from; SQLAlchemy may complain of the transaction lost with it.

    What was on its way out when the error came is no cause of it.
    """
    before = error.__context__ if isinstance(error, SQLAlchemyError) else None
    return error.__cause__ or (before if isinstance(before, Exception) else None)
