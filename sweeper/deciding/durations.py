"""What a launch takes (time, energy), learned from those that have been made. Pure.

Launches of one kind load the same and differ only in numbers, so they take about as long. A sum of several is
known better than each of them, which is why the two have bounds of their own.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sweeper.deciding.per_trial import PerTrial
from sweeper.records import LaunchRecord, TrialRecord, duration_s
from sweeper.spec import ServerConfig
from sweeper.statistics.stats import t_quantile

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
class Sample:
    """What launches of one kind have taken."""

    values: tuple[float, ...]

    def upper(self, before_any: float) -> float:
        """A bound for one more value like these, which scatter by a factor; `before_any` while there are none."""
        return before_any if self._bound is None else self._bound

    def upper_sum(self, count: int, before_any: float) -> float:
        """A bound for the sum of `count` more values like these; never above as many bounds for one."""
        single, num = self.upper(before_any), len(self.values)
        if count == 0 or num < 2:
            return count * single
        spread = self._deviation * math.sqrt(count * (1 + count / num))
        bound = count * statistics.fmean(self.values) + t_quantile(UPPER, num - 1) * spread
        return min(count * single, bound)

    @cached_property
    def _bound(self) -> float | None:
        positive = [value for value in self.values if value > 0]
        if not positive:
            return None
        longest = max(positive)
        if len(positive) == 1:
            return FIRST_MARGIN * longest
        if min(positive) == longest:
            return longest
        logs = [math.log(value) for value in positive]
        reach = t_quantile(UPPER, len(logs) - 1) * statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
        return min(MOST * longest, max(longest, math.exp(statistics.fmean(logs) + reach)))

    @cached_property
    def _deviation(self) -> float:
        return statistics.stdev(self.values)


NOTHING = Sample(())


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
        return self._sample(kind).upper(self.before_any)

    def total(self, of_baseline: int, of_others: int) -> float:
        """What so many launches of the baseline and of others take at most, all together."""
        parts = ((BASELINE, of_baseline), (None, of_others))
        return sum(self._sample(kind).upper_sum(count, self.before_any) for kind, count in parts)

    def _sample(self, kind: str | None) -> Sample:
        wanted = self._others if kind is None else self._samples.get(kind, NOTHING)
        return wanted if len(wanted.values) >= MIN_OF_A_KIND else self._everything

    @cached_property
    def _samples(self) -> Mapping[str, Sample]:
        return {kind: Sample(values) for kind, values in self.by_kind.items()}

    @cached_property
    def _everything(self) -> Sample:
        return Sample(tuple(itertools.chain.from_iterable(self.by_kind.values())))

    @cached_property
    def _others(self) -> Sample:
        kinds = (values for kind, values in self.by_kind.items() if kind != BASELINE)
        return Sample(tuple(itertools.chain.from_iterable(kinds)))


def kind_of(config: ServerConfig, baseline: ServerConfig) -> str:
    """The settings that are no numbers and differ from the baseline's: algorithm, backends, draft model."""
    theirs = baseline.flags
    different = [item for item in config.flags.items() if theirs.get(item[0]) != item[1]]
    named = [f"{name}={value}" for name, value in sorted(different) if isinstance(value, str | bool)]
    return ", ".join(named)


class Taken:
    """What `take` says of each launch of one study that was measured to its end."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._baseline = ServerConfig()
        self._each: PerTrial[tuple[str, tuple[float, ...]]] = PerTrial(self._of)

    def learned(self, trials: Sequence[TrialRecord], before_any: float) -> Learned:
        """What is learned of it, each trial looked at once. `trials[0]` is the baseline."""
        if trials and trials[0].canonical != self._baseline:
            self._baseline, self._each = trials[0].canonical, PerTrial(self._of)
        found: dict[str, list[float]] = {}
        for kind, values in self._each.of(trials):
            if values:
                found.setdefault(kind, []).extend(values)
        return Learned({kind: tuple(values) for kind, values in found.items()}, before_any)

    def _of(self, trial: TrialRecord) -> tuple[str, tuple[float, ...]]:
        kind = BASELINE if trial.is_baseline else kind_of(trial.canonical, self._baseline) or "numbers"
        taken = (self._take(launch) for launch in trial.measured if not launch.estimated)
        return kind, tuple(value for value in taken if value is not None)


def learn(trials: Sequence[TrialRecord], take: Take, before_any: float) -> Learned:
    """What `take` says of each launch that was measured to its end. `trials[0]` is the baseline."""
    return Taken(take).learned(trials, before_any)


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
