"""Addresses of databases: which kind they name, and how they are shown without secrets."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from launchers.masking import MASK
from launchers.userinfo import hide_userinfos, userinfos

_PSYCOPG = "postgresql+psycopg://"


def sqlite_file(url: str) -> Path | None:
    """The file that an address of SQLite names, as it is written there; None for any other address."""
    prefix, _, path = url.partition(":///")
    return Path(path) if prefix.startswith("sqlite") and path else None


def is_shared(url: str) -> bool:
    """Whether several hosts can share a study in the storage at this address."""
    return url.startswith(("postgresql", "postgres:"))


def normal_url(url: str) -> str:
    """The address as SQLAlchemy takes it: `postgresql://` and `postgres://` mean psycopg.

    So does a list of servers, as libpq writes it: `//USER@HOST1:5432,HOST2:5432/DATABASE`, or `?host=` with such.
    """
    for plain in ("postgresql://", "postgres://"):
        if url.startswith(plain):
            url = f"{_PSYCOPG}{url.removeprefix(plain)}"
    return _each_host_named(url) if url.startswith(_PSYCOPG) else url


def _each_host_named(url: str) -> str:
    """Several servers as SQLAlchemy takes them: `?host=HOST1:5432&host=HOST2:5432`."""
    place, _, query = url.removeprefix(_PSYCOPG).partition("?")
    servers, slash, database = place.partition("/")
    user, at, hosts = servers.rpartition("@")
    given = [f"host={host}" for host in hosts.split(",")] if "," in hosts else []
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        listed = name == "host" and "," in value and ":" in value
        given += [f"host={host}" for host in value.split(",")] if listed else [option]
    where = f"{user}{at}" if "," in hosts else servers
    return f"{_PSYCOPG}{where}{slash}{database}{'?' if given else ''}{'&'.join(given)}"


def masked(url: str) -> str:
    """The address without anything that may be secret: user, password, and a password among the options."""
    try:
        parsed = make_url(hide_userinfos(url, MASK))
    except (ArgumentError, ValueError):
        return f"{url.partition('://')[0]}://***"
    shown = parsed.difference_update_query(["password", "sslpassword", "passfile"])
    scheme, _, rest = shown._replace(username=None, password=None).render_as_string().partition("://")
    return f"{scheme}://***@{rest}" if parsed.username or parsed.password else f"{scheme}://{rest}"


def has_password(url: str) -> bool:
    """Whether an address that can be read holds one."""
    parsed = make_url(normal_url(url))
    return parsed.password is not None or "password" in parsed.query


def is_misread(url: str) -> bool:
    """Whether the password holds an @ as it is: what stands behind it would be taken for the host, and shown."""
    return any("@" in url[begin:end].partition(":")[2] for begin, end in userinfos(url))
