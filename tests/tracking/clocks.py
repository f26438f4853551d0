"""Clocks for the tracker's tests. One is read before every call to MLflow, so it can act there."""

from __future__ import annotations

import datetime
import os
import signal


class ManualClock:
    """Stands still unless it is told to go on, or goes on by `step_s` at every reading."""

    def __init__(self, step_s: float = 0.0) -> None:
        self.now_s = 1000.0
        self.step_s = step_s

    def monotonic_s(self) -> float:
        self.now_s += self.step_s
        return self.now_s

    def boottime_s(self) -> float:
        return self.now_s

    def zone(self) -> datetime.tzinfo:
        return datetime.UTC

    def now(self) -> datetime.datetime:
        return datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"a sync does not sleep, and not {seconds} s")


class DeadlyClock(ManualClock):
    """Kills its process, as `kill -9` does, when it is read for the `last`-th time."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.left = last

    def monotonic_s(self) -> float:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().monotonic_s()


class CountingClock(ManualClock):
    """Counts its readings."""

    def __init__(self) -> None:
        super().__init__()
        self.readings = 0

    def monotonic_s(self) -> float:
        self.readings += 1
        return super().monotonic_s()
