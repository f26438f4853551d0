"""The only place that reads the clock or sleeps: everything else is given a `Clock`."""

from __future__ import annotations

import datetime
import time
from typing import Protocol


class Clock(Protocol):
    """Time as an argument, so that logic can be tested without waiting."""

    def monotonic_s(self) -> float:
        """Seconds since some fixed point; never goes backwards."""

    def now(self) -> datetime.datetime:
        """The current moment, in UTC, with its time zone."""

    def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`."""


class SystemClock:
    """The machine's own clock."""

    def monotonic_s(self) -> float:
        """Seconds since some fixed point; never goes backwards."""
        return time.monotonic()

    def now(self) -> datetime.datetime:
        """The current moment, in UTC, with its time zone."""
        return datetime.datetime.now(datetime.UTC)

    def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`."""
        time.sleep(max(0.0, seconds))
