"""What a check finds, and what a check is. Plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from sweeper.frozen import Frozen


class Level(StrEnum):
    """How bad it is. `WAITING`: it could not be looked at, because something else must be mended first."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    WAITING = "waiting"


class Place(StrEnum):
    """Where it is, in the order of the way from here to the first token."""

    HERE = "here"
    WAY = "way"
    HOST = "host"
    GPUS = "gpus"
    MODEL = "model"
    STORES = "stores"


PER_HOST = (Place.WAY, Place.HOST, Place.GPUS)
"""Places that each host of a server that spans several has of its own."""


@dataclass(frozen=True)
class Said:
    """One thing that a check says. `is_setting`: what must change is a setting of the run (`run` ends with 2)."""

    level: Level
    reason: str
    fix: str = ""
    is_setting: bool = False


class Finding(Frozen):
    """One thing that a check said, with where it was said. `host`: empty for what is no host's own."""

    place: Place
    host: str
    check: str
    level: Level
    reason: str
    fix: str = ""
    is_setting: bool = False


Looks = TypeVar("Looks")


@dataclass(frozen=True)
class Check(Generic[Looks]):
    """One row of the table. `needs`: checks that must hold before this one can be looked at.

    `asks`: what it asks, for the documentation. `look` may raise LauncherError, SpecsweepError, OSError and what a
    storage raises: that is an error of this check.
    """

    name: str
    place: Place
    asks: str
    look: Callable[[Looks], Iterable[Said]]
    needs: tuple[str, ...] = ()


def ok(reason: str) -> Said:
    """All is well."""
    return Said(Level.OK, reason)


def warning(reason: str, fix: str = "") -> Said:
    """A run can begin, and its numbers or its night may suffer."""
    return Said(Level.WARNING, reason, fix)


def error(reason: str, fix: str = "") -> Said:
    """A run would end, or fail launch after launch."""
    return Said(Level.ERROR, reason, fix)


def setting(reason: str, fix: str = "") -> Said:
    """A run would refuse its settings."""
    return Said(Level.ERROR, reason, fix, is_setting=True)
