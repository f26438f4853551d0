"""Whether the host became faster or slower during the night: drawn from the baseline, launched again and again."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from pydantic import AwareDatetime

from sweeper.deciding.launches import hours_between, usable
from sweeper.records import LaunchRecord, Record
from sweeper.statistics.stats import trend

ALPHA = 0.05
"""A trend is taken for drift when noise alone would show it this rarely."""

MIN_LAUNCHES = 4
"""Three points always lie near some line."""


class Drift(Record):
    """What the baseline's launches say. `pct_per_hour` is above 0 for a host that becomes faster.

    `p`: how often noise alone would give such a slope, or a steeper one; both are absent for fewer than four
    launches. `first_at` and `last_at`: between these something is known.
    """

    num_launches: int = 0
    pct_per_hour: float | None = None
    p: float | None = None
    first_at: AwareDatetime | None = None
    last_at: AwareDatetime | None = None

    @property
    def significant(self) -> bool:
        """Whether the host drifts, as far as noise lets one say."""
        return self.p is not None and self.p < ALPHA

    @property
    def hours(self) -> float:
        """From the first of the launches to the last one."""
        if self.first_at is None or self.last_at is None:
            return 0.0
        return hours_between(self.first_at, self.last_at)

    def factor(self, moment: datetime.datetime) -> float:
        """How fast the host was at `moment`, relative to the first launch: values divided by it can be compared.

        1 without significant drift. Before the first launch and after the last one, what held at that one.
        """
        if not self.significant or self.pct_per_hour is None or self.first_at is None:
            return 1.0
        since = min(max(hours_between(self.first_at, moment), 0.0), self.hours)
        return math.exp(self.pct_per_hour / 100 * since)

    @property
    def text(self) -> str:
        """In words, a whole sentence."""
        if self.p is None or self.pct_per_hour is None:
            times = f"launched {self.num_launches} x" if self.num_launches else "not launched"
            return f"Whether the host drifted is not known: the baseline was {times}."
        seen = f"{self.num_launches} launches of the baseline over {self.hours:.1f} h"
        change_pct = 100 * math.expm1(self.pct_per_hour / 100 * self.hours)
        if not self.significant:
            return f"No drift of the host was seen ({change_pct:+.2f} % in all, p = {self.p:.2f}, {seen})."
        direction = "faster" if self.pct_per_hour > 0 else "slower"
        odds = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        change = f"{direction} by {abs(change_pct):.1f} % in all ({odds}, {seen})"
        return f"The host became {change}; compared as of the same time."


def drift_of(launches: Sequence[LaunchRecord], objective: str) -> Drift:
    """The drift that launches of one and the same configuration show."""
    known = [launch for launch in launches if usable(launch, objective)]
    if not known:
        return Drift()
    known.sort(key=lambda launch: launch.started_at)
    first, last = known[0].started_at, known[-1].started_at
    bare = Drift(num_launches=len(known), first_at=first, last_at=last)
    if len(known) < MIN_LAUNCHES:
        return bare
    hours = [hours_between(first, launch.started_at) for launch in known]
    line = trend(hours, [math.log(launch.metrics[objective]) for launch in known])
    if line is None:
        return bare
    return bare.model_copy(update={"pct_per_hour": 100 * line.slope, "p": line.p})
