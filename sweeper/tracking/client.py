"""MLflow's client: loaded late, opened only on a store that can be used, and limited in time."""

from __future__ import annotations

import gc
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, TypeVar, cast

from launchers.clock import Clock
from sweeper.tracking.place import Place, PlaceUnusable, check_database, check_writable

if TYPE_CHECKING:
    from mlflow import MlflowClient

T = TypeVar("T")

HTTP_TIMEOUT_S = 10
_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # The client's own retries are off: a repeated "create run" makes two, and the next sync is our retry.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
}


_STUMBLES = (ArithmeticError, AttributeError, LookupError, RecursionError, SystemError, TypeError, ValueError)
"""What MLflow's client and protobuf raise over values that they do not expect."""


class OutOfTime(Exception):
    """The time for this sync is used up; the rest is done next time."""


@dataclass(frozen=True)
class Calls:
    """The client, for as long as there is time. `end_s` is a moment of the clock's `monotonic_s`."""

    mlflow: MlflowClient
    clock: Clock
    end_s: float

    def client(self) -> MlflowClient:
        """The client, for one call, which over HTTP will wait no longer than the time that is left.

        Raises OutOfTime. Besides what the client is documented to raise, the call raises PlaceUnusable.
        """
        left_s = self.end_s - self.clock.monotonic_s()
        if left_s <= 0:
            raise OutOfTime
        limit_http(min(HTTP_TIMEOUT_S, ceil(left_s)))
        return cast("MlflowClient", _Reading(self.mlflow))


class _Reading:
    """The client, whose answers nobody has checked: what it stumbles over in one is told as that.

    It makes objects of what a server says, and numbers without bounds or text that is none end in whatever that
    raises, far from where a wrong answer is expected.
    """

    def __init__(self, mlflow: MlflowClient) -> None:
        self._mlflow = mlflow

    def __getattr__(self, name: str) -> Callable[..., object]:
        call: Callable[..., object] = getattr(self._mlflow, name)

        def read(*args: object, **settings: object) -> object:
            try:
                return call(*args, **settings)
            except _STUMBLES as error:
                raise PlaceUnusable(
                    f"what answers there makes no sense: {type(error).__name__}: {error}"
                ) from error

        return read


def within(seconds: float, work: Callable[[], T]) -> T | None:
    """What `work` returns, or None when it takes longer. Raises what it raises.

    HTTP timeouts hold for single reads, and an answer may come byte by byte. What takes longer is left to its
    thread, which gives up at its next call or ends with the process.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            done.set_exception(error)

    Thread(target=run, name="mlflow", daemon=True).start()
    finished, _ = wait([done], seconds)
    return done.result() if finished else None


def limit_http(seconds: int) -> None:
    """From now on MLflow's client waits so long for an answer."""
    os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] = str(seconds)


def given(identifier: str) -> str:
    """`identifier`. Raises PlaceUnusable when it is empty: the client fills in what a strange answer lacks."""
    if not identifier:
        raise PlaceUnusable("what answers there is not an MLflow server")
    return identifier


def load_mlflow() -> tuple[type[Exception], ...]:
    """Load MLflow, with settings that suit a sweep; what it, its database and its connections may raise.

    It takes seconds and 200 MB, so it is not loaded before it is needed.
    """
    os.environ.update(_SETTINGS)
    from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return MlflowException, ParseError, SQLAlchemyError, sqlite3.Error, OSError, PlaceUnusable


def open_client(place: Place) -> MlflowClient:
    """A client for the store; an SQLite database is made if it is missing. Raises what `load_mlflow` names.

    What has been loaded by now stays. It is not searched for garbage again: that took a quarter of a second after
    every other launch.
    """
    from mlflow import MlflowClient

    if place.database:
        if not place.database.exists():
            _make_database(place.database, place.artifact_root or "")
        check_database(place.database)
        check_writable(place.database)
    client = MlflowClient(tracking_uri=place.uri)
    gc.freeze()
    return client


def _make_database(database: Path, artifact_root: str) -> None:
    """Make the file aside and move it into place: MLflow cannot repair tables that a kill left half made."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    database.parent.mkdir(parents=True, exist_ok=True)
    aside = database.with_name(f"{database.name}.new")
    for leftover in (aside, aside.with_name(f"{aside.name}-journal")):
        leftover.unlink(missing_ok=True)
    check_writable(aside)
    store = SqlAlchemyStore(f"sqlite:///{aside}", artifact_root)  # type: ignore[no-untyped-call]
    store.engine.dispose()
    aside.replace(database)
