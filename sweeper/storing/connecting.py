"""How SQLAlchemy connects to the database of a study, and how soon both ends notice that the other is gone."""

from __future__ import annotations

from typing import Any

import psycopg
from sqlalchemy import URL, Engine, create_engine, event, make_url

from sweeper.storing.addresses import is_shared
from sweeper.storing.answering import AnsweredConnection

_PATIENCE = {
    "connect_timeout": 10,
    "application_name": "specsweep",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_SESSION = """
SET statement_timeout = '120s'; SET lock_timeout = '60s'; SET idle_in_transaction_session_timeout = '60s';
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3
"""
"""The server, too, is to notice soon that a worker's machine is gone, and frees what it held."""


def engine_settings(url: str | URL) -> dict[str, Any]:
    """How SQLAlchemy is to connect.

    SQLite waits for a lock instead of failing at once. To PostgreSQL one connection is kept (Optuna takes a
    second one when it opens a storage); it is checked before it is used, and both ends notice within half a
    minute that the other is gone.
    """
    if not is_shared(str(url)):
        return {"connect_args": {"timeout": 60}}
    given = make_url(url).query
    arguments = {name: value for name, value in _PATIENCE.items() if name not in given}
    return {"pool_pre_ping": True, "pool_size": 1, "max_overflow": 1, "connect_args": arguments}


def connect(url: str | URL) -> Engine:
    """An engine of its own for a thread of its own. `url`: a shared database's."""
    return prepared(create_engine(url, **engine_settings(url)))


def prepared(engine: Engine) -> Engine:
    """Each new connection gets the timeouts of `_SESSION`."""

    def settle(connection: psycopg.Connection[Any], _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_SESSION)
        connection.commit()

    event.listen(engine, "do_connect", _connected)
    event.listen(engine, "connect", settle)
    return engine


def _connected(_dialect: object, _record: object, args: Any, given: Any) -> AnsweredConnection:  # noqa: ANN401
    """A connection as the driver makes it, on which no answer is waited for without end."""
    return AnsweredConnection.connect(*args, **given)
