"""What a launch takes (time, energy), learned from those that have been made. Pure.

Launches of one kind load the same and differ only in numbers, so they take about as long. A sum of several is
known better than each of them, which is why the two have bounds of their own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sweeper.records import LaunchRecord, TrialRecord, duration_s
from sweeper.spec import ServerConfig
from sweeper.stats import t_quantile

UPPER = 0.95
"""A launch takes no longer than the bound with this probability."""

MIN_OF_A_KIND = 3
"""With fewer launches of one kind those of all kinds count."""

FIRST_MARGIN = 1.5
"""What is allowed for beyond a single launch: starts from a cold disk, other kernels to compile."""

MOST = 2.0
"""No bound lies above so many times the longest that was seen."""

BASELINE = ""
"""The kind of the baseline."""

Take = Callable[[LaunchRecord], float | None]


@dataclass(frozen=True)
class Learned:
    """What launches have taken, by kind; `before_any` is assumed until one has been measured."""

    by_kind: Mapping[str, tuple[float, ...]]
    before_any: float

    @property
    def known(self) -> bool:
        """Whether any launch has been measured."""
        return any(self.by_kind.values())

    def upper(self, kind: str | None) -> float:
        """What one launch takes at most; None: of any kind but the baseline's, if there are enough."""
        return _upper(self._values(kind), self.before_any)

    def total(self, of_baseline: int, of_others: int) -> float:
        """What so many launches of the baseline and of others take at most, all together."""
        parts = ((BASELINE, of_baseline), (None, of_others))
        return sum(_upper_sum(self._values(kind), count, self.before_any) for kind, count in parts)

    def _values(self, kind: str | None) -> tuple[float, ...]:
        everything = tuple(value for values in self.by_kind.values() for value in values)
        others = tuple(value for name, values in self.by_kind.items() if name != BASELINE for value in values)
        wanted = others if kind is None else self.by_kind.get(kind, ())
        return wanted if len(wanted) >= MIN_OF_A_KIND else everything


def kind_of(config: ServerConfig, baseline: ServerConfig) -> str:
    """The settings that are no numbers and differ from the baseline's: algorithm, backends, draft model."""
    theirs = baseline.flags
    different = [item for item in config.flags.items() if theirs.get(item[0]) != item[1]]
    named = [f"{name}={value}" for name, value in sorted(different) if isinstance(value, str | bool)]
    return ", ".join(named)


def learn(trials: Sequence[TrialRecord], take: Take, before_any: float) -> Learned:
    """What `take` says of each launch that was measured to its end. `trials[0]` is the baseline."""
    found: dict[str, list[float]] = {}
    for trial in trials:
        kind = BASELINE if trial.is_baseline else kind_of(trial.canonical, trials[0].canonical) or "numbers"
        for launch in trial.measured:
            if not launch.estimated and (value := take(launch)) is not None:
                found.setdefault(kind, []).append(value)
    return Learned({kind: tuple(values) for kind, values in found.items()}, before_any)


def launch_s(launch: LaunchRecord) -> float:
    """Seconds from the first look at the host to the verified stop, by a clock that nobody sets.

    Records of before this was measured have only the time of day at both ends.
    """
    known = launch.metrics.get("launch_s")
    return known if known is not None else max(0.0, duration_s(launch.started_at, launch.ended_at))


def energy_wh(launch: LaunchRecord) -> float | None:
    """Watt-hours of the watched GPUs; None where the host does not tell their power."""
    return launch.metrics.get("energy_wh")


def start_s(launch: LaunchRecord) -> float | None:
    """Seconds from the launch until the server was ready."""
    return launch.metrics.get("start_s")


def _upper(values: Sequence[float], before_any: float) -> float:
    """A bound for one more value like these, which scatter by a factor."""
    positive = [value for value in values if value > 0]
    if not positive:
        return before_any
    longest = max(positive)
    if len(positive) == 1:
        return FIRST_MARGIN * longest
    if min(positive) == longest:
        return longest
    logs = [math.log(value) for value in positive]
    reach = t_quantile(UPPER, len(logs) - 1) * statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
    return min(MOST * longest, max(longest, math.exp(statistics.fmean(logs) + reach)))


def _upper_sum(values: Sequence[float], count: int, before_any: float) -> float:
    """A bound for the sum of `count` more values like these; never above as many bounds for one."""
    single = _upper(values, before_any)
    if count == 0 or len(values) < 2:
        return count * single
    spread = statistics.stdev(values) * math.sqrt(count * (1 + count / len(values)))
    bound = count * statistics.fmean(values) + t_quantile(UPPER, len(values) - 1) * spread
    return min(count * single, bound)
