"""The only place that reads the clock or sleeps: everything else is given a `Clock`."""

from __future__ import annotations

import datetime
import os
import time
import zoneinfo
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """Time as an argument, so that logic can be tested without waiting."""

    def monotonic_s(self) -> float:
        """Seconds since some fixed point; never goes backwards."""

    def boottime_s(self) -> float:
        """As `monotonic_s`, the time in which the machine slept (suspended) included."""

    def now(self) -> datetime.datetime:
        """The current moment, in UTC, with its time zone. It jumps when somebody sets the clock."""

    def zone(self) -> datetime.tzinfo:
        """The time zone in which the person at this machine reads a clock."""

    def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`."""


class SystemClock:
    """The machine's own clock."""

    def monotonic_s(self) -> float:
        """Seconds since some fixed point; never goes backwards."""
        return time.monotonic()

    def boottime_s(self) -> float:
        """As `monotonic_s`, the time in which the machine slept (suspended) included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> datetime.datetime:
        """The current moment, in UTC, with its time zone."""
        return datetime.datetime.now(datetime.UTC)

    def zone(self) -> datetime.tzinfo:
        """That of $TZ, else of /etc/localtime, else UTC: with its rules, where an offset alone has none.

        $TZ may be a name (`Europe/Berlin`) or a file (`:/etc/localtime`); an empty one is UTC, as everywhere.
        """
        return known_zone() or datetime.datetime.now().astimezone().tzinfo or datetime.UTC

    def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`."""
        time.sleep(max(0.0, seconds))


def known_zone() -> datetime.tzinfo | None:
    """The zone that $TZ or /etc/localtime gives, with its rules.

    None where $TZ names none of this machine's, or is a rule of its own (`CET-1CEST`): then only the offset of the
    moment is known, and of a name that is unknown not even that is right.
    """
    name = os.environ.get("TZ", "/etc/localtime").removeprefix(":")
    if not name:
        return datetime.UTC
    try:
        if not name.startswith("/"):
            return zoneinfo.ZoneInfo(name)
        with Path(name).open("rb") as file:
            return zoneinfo.ZoneInfo.from_file(file)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        return None
