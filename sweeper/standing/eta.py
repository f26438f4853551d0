"""When a sweep may end, and between when and when. Pure."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass

from sweeper.deciding.plan import Progress

_NINE_OF_TEN = 1.645
"""Standard deviations on either side of a normal distribution's mean."""


@dataclass(frozen=True)
class Eta:
    """Seconds to the end: expected, and between what in nine of ten cases, as far as launches go on as before."""

    mean_s: float
    low_s: float
    high_s: float

    def against(self, left_s: float) -> str:
        """In words, how that goes with a deadline in `left_s` seconds."""
        if self.high_s <= left_s:
            return "in time"
        return "may be late" if self.mean_s <= left_s else "the deadline comes first"


def eta_of(progress: Progress, elapsed_s: float = 0.0) -> Eta | None:
    """The time to the end, `elapsed_s` into the next launch; None before a launch was timed.

    The number of launches left is taken as it is: an upper estimate, since what is clear ends early.
    """
    if progress.mean_launch_s is None:
        return None
    count, mean = progress.launches_left, progress.mean_launch_s
    rest_s = max(0, count - 1) * mean
    expected = max(rest_s, count * mean - elapsed_s)
    error = _NINE_OF_TEN * progress.launch_sd_s * math.sqrt(count + count**2 / max(1, progress.num_timed))
    return Eta(expected, max(0.0, expected - error), expected + error)


def until(deadline_at: datetime.datetime, now: datetime.datetime) -> float:
    """Seconds to the deadline, negative behind it."""
    return (deadline_at - now).total_seconds()
