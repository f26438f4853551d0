"""Addresses of databases: which kind they name, and how they are shown without secrets."""

from __future__ import annotations

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError


def is_shared(url: str) -> bool:
    """Whether several hosts can share a study in the storage at this address."""
    return url.startswith(("postgresql", "postgres:"))


def normal_url(url: str) -> str:
    """The address as SQLAlchemy takes it: `postgresql://` and `postgres://` mean psycopg."""
    for plain in ("postgresql://", "postgres://"):
        if url.startswith(plain):
            return f"postgresql+psycopg://{url.removeprefix(plain)}"
    return url


def masked(url: str) -> str:
    """The address without anything that may be secret: user, password, and a password among the options."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return f"{url.partition('://')[0]}://***"
    shown = parsed.difference_update_query(["password", "sslpassword", "passfile"])
    scheme, _, rest = shown._replace(username=None, password=None).render_as_string().partition("://")
    return f"{scheme}://***@{rest}" if parsed.username or parsed.password else f"{scheme}://{rest}"


def has_password(url: str) -> bool:
    """Whether an address that can be read holds one."""
    parsed = make_url(normal_url(url))
    return parsed.password is not None or "password" in parsed.query
