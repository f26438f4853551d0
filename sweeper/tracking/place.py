"""Where the study's MLflow lives: its address, its files, and how to open its page. Nothing here loads MLflow."""

from __future__ import annotations

import os
import platform
import socket
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from launchers.masking import MASK
from launchers.userinfo import hide_userinfos
from sweeper.errors import ConfigError, SpecsweepError
from sweeper.spec import TrackingSpec, digest

_SQLITE = "sqlite:///"
_BELOW = frozenset({"mlflow", "requests", "urllib3", "sqlalchemy", "sqlite3"})


class PlaceUnusable(SpecsweepError):
    """MLflow cannot be used as configured; the message is one line for a person."""


@dataclass(frozen=True)
class Place:
    """A tracking store: `uri` as MLflow is given it, and its SQLite file (None: it is a server).

    `artifact_root` is where a new experiment keeps its files; None leaves that to the server.
    """

    uri: str
    artifact_root: str | None
    database: Path | None

    def __repr__(self) -> str:
        return f"Place({mask(self.uri)})"


def uri_mistake(uri: str) -> str | None:
    """What is wrong with a tracking URI; None when it can be used (empty: tracking is off)."""
    if uri in ("", _SQLITE) or uri.startswith("sqlite:"):
        usable = not uri or (uri.startswith(_SQLITE) and uri != _SQLITE and ":memory:" not in uri)
        return None if usable else f"{uri!r} names no file; write sqlite:///PATH"
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises, too
    except ValueError as error:
        return f"{mask(uri)!r} is not an address: {error}"
    if parts.scheme in ("http", "https") and parts.hostname:
        return None
    return (
        f"{mask(uri)!r} is not supported; use sqlite:///PATH, http://HOST:PORT (an MLflow server) or nothing (off)"
    )


def place_of(spec: TrackingSpec) -> Place:
    """The store that `spec` names, with absolute paths. Raises PlaceUnusable."""
    if mistake := uri_mistake(spec.uri):
        raise PlaceUnusable(f"tracking.uri {mistake}")
    has_scheme = "://" in spec.artifact_location
    if not spec.uri.startswith("sqlite:"):
        return Place(spec.uri.rstrip("/"), spec.artifact_location if has_scheme else None, None)
    database = _usable(Path(spec.uri.removeprefix(_SQLITE)).absolute())
    root = spec.artifact_location or str(database.parent / "mlartifacts")
    return Place(f"{_SQLITE}{database}", root if has_scheme else _usable(Path(root).absolute()).as_uri(), database)


def view_name(spec: TrackingSpec) -> str:
    """A word that is the same for all processes that see the same MLflow: a file is only this machine's."""
    machine = platform.node() if spec.uri.startswith("sqlite:") else ""
    return f"view {digest([spec.uri, machine])[:12]}"


def _usable(path: Path) -> Path:
    """`path`. Raises PlaceUnusable when MLflow, which puts it into addresses, would take it for another."""
    if set("%?#") & set(str(path)):
        raise PlaceUnusable(f"{str(path)!r}: MLflow cannot keep files where a path has %, ? or # in it")
    return path


def is_missing_below(root: str | None, uri: str) -> bool:
    """Whether `uri` is a folder below the local folder `root` (both file: addresses) that does not exist.

    Never for another place: what a server keeps, or what was written before the study was moved.
    """
    if root is None or not root.startswith("file:") or not uri.startswith(f"{root.rstrip('/')}/"):
        return False
    return not Path(url2pathname(urlsplit(uri).path)).exists()


def check_database(database: Path) -> None:
    """Raises sqlite3.Error or PlaceUnusable when the file cannot be MLflow's database.

    MLflow itself would try ten times, for 100 seconds (3.17.2), before it says that a file is no database.
    """
    with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=rw", uri=True, timeout=2)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "trials" in tables and "experiments" not in tables:
        raise PlaceUnusable(f"{database} holds an Optuna study; MLflow needs a database of its own")


def check_writable(database: Path) -> None:
    """Raises sqlite3.Error when nothing can be written to the file, which is made, empty, if it is missing.

    MLflow itself would try for 100 seconds (see `check_database`). Nothing stays written.
    """
    where = f"file:{quote(str(database))}?mode=rwc"
    with closing(sqlite3.connect(where, uri=True, timeout=2, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE specsweep_probe (number INTEGER)")
        connection.execute("ROLLBACK")


def require_database(database: Path) -> None:
    """Raises PlaceUnusable when there is nothing to show; makes nothing."""
    if not database.is_file():
        raise PlaceUnusable(f"there is no MLflow database at {database}; run a sweep first or check study.dir")
    try:
        check_database(database)
    except sqlite3.Error as error:
        raise PlaceUnusable(f"{database}: {error}") from error


def require_port(host: str, port: int) -> None:
    """Raises ConfigError where nothing can listen at this address. MLflow would say so after some seconds."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name of a host"
        told = f"nothing can listen at {host}:{port}: {reason}"
        raise ConfigError([f"--host, --port: {told}; name others, as --port {port % 65535 + 1}"]) from None


def mask(text: str) -> str:
    """`text` without the user and password of any address in it."""
    return hide_userinfos(text, MASK)


def one_line(error: BaseException) -> str:
    """The cause of an error in at most 200 characters, without credentials.

    MLflow wraps: "Connection refused" sits four exceptions deep, behind 400 characters of addresses.
    """
    cause = error
    while (inner := cause.__cause__ or cause.__context__) and _is_cause(inner):
        cause = inner
    words = " ".join(mask(str(cause) or type(cause).__name__).split())
    return words if len(words) <= 200 else f"{words[:199]}…"


def _is_cause(error: BaseException) -> bool:
    """Whether an error came from below MLflow, and was not merely being handled when MLflow was called."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _BELOW


def ui_argv(spec: TrackingSpec, host: str, port: int) -> tuple[str, ...]:
    """The command line that serves MLflow's page on `host`:`port`; empty when `spec` names a server (it has one).

    Run it with `ui_env`. Raises PlaceUnusable, also when tracking is off.
    """
    if not spec.uri:
        raise PlaceUnusable("tracking is off (tracking.uri is empty): there is nothing to show")
    if place_of(spec).database is None:
        return ()
    server = (sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port), "--workers", "1")
    return (*server, "--uvicorn-opts", "--log-level warning")  # a line for each request tells a person nothing


def ui_env(spec: TrackingSpec) -> dict[str, str]:
    """What `ui_argv` needs in its environment: the store, no job runner (a start takes 11 s instead of 45), and no
    warnings of libraries among themselves."""
    place = place_of(spec)
    return {
        "PYTHONWARNINGS": os.environ.get("PYTHONWARNINGS", "ignore"),
        "MLFLOW_BACKEND_STORE_URI": place.uri,
        "MLFLOW_REGISTRY_STORE_URI": place.uri,
        "MLFLOW_ARTIFACTS_DESTINATION": place.artifact_root or "",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


def ui_address(spec: TrackingSpec, host: str, port: int) -> str:
    """Where the page is: the server that `spec` names (without its password), or the one that `ui_argv` starts."""
    place = place_of(spec)
    return f"http://{host}:{port}" if place.database else hide_userinfos(place.uri, "").replace("//@", "//")
