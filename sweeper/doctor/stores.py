"""Looks at the databases of the study and of MLflow without making or writing anything."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from sqlalchemy import text

from sweeper.http import Target, get_page, post
from sweeper.storing.addresses import normal_url
from sweeper.storing.connecting import connect
from sweeper.storing.database import being_opened

_TIMEOUT_S = 10.0
_SEARCH = "/api/2.0/mlflow/experiments/search"


@dataclass(frozen=True)
class PostgresLook:
    """`server`, `client`: versions, as 150004. `has_studies`: Optuna's tables are there."""

    server: int
    client: int
    has_studies: bool
    may_create: bool
    is_read_only: bool


@dataclass(frozen=True)
class MlflowLook:
    """What an MLflow server answers: its version (empty: not told), and the status of a search with our login."""

    version: str
    status: int


def look_at_postgres(url: str) -> PostgresLook:
    """One connection. Raises what SQLAlchemy raises, and ValueError: too old, or MLflow's own database."""
    address = normal_url(url)
    with being_opened(address):
        pass  # it has looked at the version and for MLflow's tables
    engine = connect(address)
    try:
        with engine.connect() as connection:
            return PostgresLook(
                server=int(connection.scalar(text("SHOW server_version_num")) or 0),
                client=psycopg.pq.version(),
                has_studies=bool(connection.scalar(text("SELECT to_regclass('studies') IS NOT NULL"))),
                may_create=bool(
                    connection.scalar(text("SELECT has_schema_privilege(current_schema(), 'CREATE')"))
                ),
                is_read_only=str(connection.scalar(text("SHOW transaction_read_only"))) == "on",
            )
    finally:
        engine.dispose()


def sqlite_tables(file: Path) -> frozenset[str]:
    """The names of its tables. Raises sqlite3.Error for what is no database."""
    with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=2)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return frozenset(str(name) for (name,) in rows)


def unwritable(path: Path) -> str:
    """Why a file or folder could not be written to or made, by its permissions; empty when it could."""
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if place != path and not place.is_dir():
        return f"{place} is no folder"
    mode = os.W_OK | (os.X_OK if place.is_dir() else 0)
    return "" if os.access(place, mode) else f"{place} cannot be written to"


def look_at_mlflow(uri: str, environment: Mapping[str, str]) -> MlflowLook:
    """Two requests. Raises ExchangeError, whose text may hold the address."""
    address = _with_login(uri.rstrip("/"), environment)
    version = get_page(Target(address), "/version", _TIMEOUT_S).decode("utf-8", "replace").strip()
    return MlflowLook(version, post(f"{address}{_SEARCH}", {"max_results": 1}, _TIMEOUT_S))


def _with_login(uri: str, environment: Mapping[str, str]) -> str:
    """The address with the user and password of MLflow's own variables, unless it has some."""
    user, word = (environment.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD"))
    parts = urlsplit(uri)
    if not user or "@" in parts.netloc:
        return uri
    login = f"{quote(user, safe='')}:{quote(word, safe='')}@"
    return urlunsplit(parts._replace(netloc=login + parts.netloc))
