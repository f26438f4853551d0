"""What all rules draw from: each measured trial as a point, and the noise that decides what may be claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sweeper.deciding.drift import Drift
from sweeper.deciding.noise import Noise
from sweeper.engines.base import Speculation
from sweeper.engines.registry import roles_of, simplicity_of, speculates_of
from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.predicting.break_even import Pace, Paces
from sweeper.records import TrialRecord
from sweeper.spec import FlagValue, ServerConfig
from sweeper.statistics.least_squares import Interval
from sweeper.statistics.least_squares import Noise as ValueNoise
from sweeper.statistics.stats import exp

THROUGHPUTS = ("output_throughput", "decode_throughput", "mean_prompt_throughput")
"""Objectives in tokens per second: what accept_length over step time gives."""

Settings = Mapping[str, FlagValue]


@dataclass(frozen=True)
class Span:
    """A number that may be known as a range only: `low` and `high` are equal otherwise."""

    low: float
    high: float

    @property
    def text(self) -> str:
        """`2.27`, or `2.00 to 2.40` for a range."""
        return f"{self.low:.2f}" if self.low == self.high else f"{self.low:.2f} to {self.high:.2f}"


@dataclass(frozen=True)
class Point:
    """A measured trial.

    `settings`: flags and, as `env.NAME`, variables. `accept_length`: None where it was not told, or nothing
    drafts.
    """

    trial: TrialRecord
    pace: Pace
    settings: Settings
    drafts: bool
    accept_length: Span | None

    @property
    def log_value(self) -> float:
        """Mean logarithm of the objective over its usable launches."""
        return self.pace.log_value

    @property
    def num_launches(self) -> int:
        """How many these are."""
        return self.pace.num_launches

    @property
    def number(self) -> int:
        """The trial's number."""
        return self.trial.number

    @property
    def value(self) -> float:
        """The objective."""
        return exp(self.log_value)

    @cached_property
    def items(self) -> frozenset[tuple[str, str]]:
        """The settings, to be compared; a bare flag that is false is one that is left away."""
        return frozenset((name, str(value)) for name, value in self.settings.items() if value is not False)

    def whole(self, name: str) -> int | None:
        """A setting that is a whole number; None where it is not set, or none."""
        value = self.settings.get(name)
        return value if type(value) is int else None


@dataclass(frozen=True)
class Context:
    """A study as the rules see it. `objective`: the metric that values are of. `engine`: its name; may be unknown.

    `concurrency`: requests under way at once.
    """

    trials: tuple[TrialRecord, ...]
    objective: str
    engine: str
    concurrency: float = 1.0

    @cached_property
    def roles(self) -> Speculation | None:
        """Which flags shape the drafts; None where that is not known."""
        return roles_of(self.engine) if self._is_known else None

    @property
    def no_graphs(self) -> str:
        """The flag that switches CUDA graphs off; empty where there is none, or none is known."""
        return self.roles.no_graphs if self.roles else ""

    @cached_property
    def _is_known(self) -> bool:
        try:
            speculates_of(self.engine)
        except ValueError:
            return False
        return True

    def drafts(self, trial: TrialRecord) -> bool:
        """Whether the trial speculates."""
        if self._is_known:
            return speculates_of(self.engine)(trial.canonical)
        return not trial.is_baseline

    def simplicity(self, config: ServerConfig) -> tuple[float, ...]:
        """Sort key, the smallest the simplest."""
        return simplicity_of(self.engine)(config) if self._is_known else (float(len(config.flags)),)

    @cached_property
    def paces(self) -> Paces:
        """How fast the trials are."""
        return Paces(self.trials, self.objective)

    @property
    def drift(self) -> Drift:
        """Of the host, from the baseline's launches."""
        return self.paces.drift

    @property
    def seen_noise(self) -> Noise:
        """The spreads that were seen."""
        return self.paces.seen_noise

    @property
    def noise(self) -> ValueNoise:
        """Variance of the logarithm of one launch's value, and how well that is known."""
        return self.paces.noise

    @property
    def noise_words(self) -> str:
        """Where the intervals come from."""
        expected = self.seen_noise.expected_launch.pct
        if self.seen_noise.launches is None:
            return f"Nothing was launched twice: that starts differ by {expected:.1f} % is assumed, not measured"
        return f"Starts of one configuration are taken to differ by {expected:.1f} %"

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every trial with a usable launch."""
        return tuple(point for trial in self.trials if (point := self._point(trial)) is not None)

    @cached_property
    def fastest_first(self) -> tuple[Point, ...]:
        """All points, fastest first."""
        return tuple(sorted(self.points, key=lambda point: -point.log_value))

    @cached_property
    def _by_value(self) -> dict[str, dict[tuple[type, object], list[Point]]]:
        return {}

    def having(self, setting: str, value: FlagValue | None) -> list[Point]:
        """The points in which a setting has this value, fastest first; None: it is left away."""
        if setting not in self._by_value:
            groups: dict[tuple[type, object], list[Point]] = {}
            for point in self.fastest_first:
                own = point.settings.get(setting)
                groups.setdefault((type(own), own), []).append(point)
            self._by_value[setting] = groups
        return self._by_value[setting].get((type(value), value), [])

    @property
    def baseline(self) -> Point | None:
        """The baseline's point; None while it has none."""
        return next((point for point in self.points if point.number == 0), None)

    @cached_property
    def drafting(self) -> tuple[Point, ...]:
        """The points that speculate, fastest first."""
        return tuple(point for point in self.fastest_first if point.drafts)

    @property
    def is_throughput(self) -> bool:
        """Whether the objective is accept_length over step time."""
        return self.objective in THROUGHPUTS

    def ratio_pct(self, ours: Point, theirs: Point) -> Interval:
        """How far one point's value lies above another's, in percent, with its interval."""
        return percent(self.log_ratio(ours, theirs))

    def log_ratio(self, ours: Point, theirs: Point, comparisons: int = 1) -> Interval:
        """The same as a logarithm; as one of so many comparisons."""
        return self.paces.log_ratio(ours.pace, theirs.pace, comparisons)

    def name(self, point: Point) -> str:
        """What tells a configuration from the baseline."""
        base = next((trial.canonical for trial in self.trials if trial.is_baseline), ServerConfig())
        return difference_text(point.trial.canonical, base)

    def shown(self, point: Point) -> str:
        """The point's value with its unit."""
        metric = METRICS[self.objective]
        return f"{metric.format(point.value)} {metric.unit}".strip()

    def drafter(self, point: Point) -> str:
        """What tells one drafter from another, in words; empty where that is not known."""
        names = self.roles.drafter if self.roles else ()
        words = [
            str(point.settings[name]).rstrip("/").rpartition("/")[2] for name in names if name in point.settings
        ]
        return " ".join(words)

    def _point(self, trial: TrialRecord) -> Point | None:
        if (pace := self.paces.of(trial)) is None:
            return None
        config, drafts = trial.canonical, self.drafts(trial)
        return Point(
            trial=trial,
            pace=pace,
            settings={**config.flags, **{f"env.{name}": value for name, value in config.env.items()}},
            drafts=drafts,
            accept_length=_accept_length(trial) if drafts else None,
        )


def _accept_length(trial: TrialRecord) -> Span | None:
    exact = trial.mean("accept_length")
    if exact is not None:
        return Span(exact, exact)
    low, high = trial.mean("accept_length_low"), trial.mean("accept_length_high")
    return Span(low, high) if low is not None and high is not None else None


def percent(logarithm: Interval) -> Interval:
    """The logarithm of a ratio as a difference in percent."""
    return Interval(*(100 * (exp(each) - 1) for each in (logarithm.value, logarithm.low, logarithm.high)))


def pct_text(interval: Interval) -> str:
    """`+41 % (+33 to +49)`; one digit more where the value is small."""
    digits = 0 if abs(interval.value) >= 10 else 1
    return f"{interval.value:+.{digits}f} % ({interval.low:+.{digits}f} to {interval.high:+.{digits}f})"


def numbers(points: Sequence[Point]) -> tuple[int, ...]:
    """The trials' numbers."""
    return tuple(sorted({point.number for point in points}))
