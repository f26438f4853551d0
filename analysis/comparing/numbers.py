"""How much faster one study is than another, with intervals. Pure.

Two nights are two samples: an interval holds what starts of a server differ by, as each study has seen it, and not
what else may differ between the nights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from analysis.reading import Reading
from sweeper.deciding.launches import usable
from sweeper.records import TrialRecord, TrialState
from sweeper.spec import FlagValue
from sweeper.statistics.stats import CONFIDENCE, exp, t_quantile


@dataclass(frozen=True)
class Change:
    """The ratio of a later value to an earlier one, and its two-sided 90 % interval."""

    ratio: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether it differs from 1 by more than starts do."""
        return self.low > 1 or self.high < 1


@dataclass(frozen=True)
class Matched:
    """The same configuration in two studies, apart from what always differs between these."""

    earlier: TrialRecord
    later: TrialRecord
    change: Change


@dataclass(frozen=True)
class Side:
    """One of the studies that are compared. `label`: how it is called on the page."""

    label: str
    reading: Reading

    @property
    def baseline(self) -> TrialRecord | None:
        """Its configuration without speculation, if that was measured."""
        found = self.reading.by_number.get(0)
        return found if found is not None and self.values(found) else None

    @property
    def best(self) -> TrialRecord | None:
        """Its advised configuration; where that is the baseline, the fastest other one."""
        return self.reading.rival

    def values(self, trial: TrialRecord) -> list[float]:
        """The objective in the launches that the study's own verdict counts, else in all of them."""
        metric = self.reading.objective
        fresh = [n for n in self.reading.compared(trial) if usable(n, metric)] if self._compares(trial) else []
        return [n.metrics[metric] for n in fresh or [n for n in trial.measured if usable(n, metric)]]

    def _compares(self, trial: TrialRecord) -> bool:
        return trial.is_baseline or any(
            row.trial_number == trial.number for row in self.reading.verdict.comparisons
        )

    @cached_property
    def drafting(self) -> tuple[TrialRecord, ...]:
        """The measured configurations beside the baseline."""
        trials = self.reading.trials
        return tuple(t for t in trials if not t.is_baseline and t.state is TrialState.COMPLETE and self.values(t))

    @cached_property
    def settings(self) -> Mapping[str, frozenset[FlagValue]]:
        """Each flag and variable with the values that it has among those."""
        found: dict[str, set[FlagValue]] = {}
        for trial in self.drafting:
            for name, value in _settings(trial).items():
                found.setdefault(name, set()).add(value)
        return {name: frozenset(values) for name, values in found.items()}


def change(earlier: Side, later: Side, trials: tuple[TrialRecord, TrialRecord]) -> Change | None:
    """How much faster `trials[1]` of `later` is than `trials[0]` of `earlier`; None where one has no value."""
    values = earlier.values(trials[0]), later.values(trials[1])
    if not all(values):
        return None
    spreads = [side.reading.verdict.noise.expected_launch for side in (earlier, later)]
    errors = [(s.pct / 100) ** 2 / len(v) for s, v in zip(spreads, values, strict=True)]
    gap = _mean_log(values[1]) - _mean_log(values[0])
    whole = sum(errors)
    if whole <= 0:
        return Change(exp(gap), exp(gap), exp(gap))
    degrees = whole**2 / sum(e**2 / s.degrees for e, s in zip(errors, spreads, strict=True))
    width = t_quantile(CONFIDENCE, degrees) * math.sqrt(whole)
    return Change(exp(gap), exp(gap - width), exp(gap + width))


def reach(side: Side, trial: TrialRecord) -> float:
    """By what factor the true mean of a trial may lie above or below its value: the two-sided 90 % interval."""
    spread = side.reading.verdict.noise.expected_launch
    error = spread.pct / 100 / math.sqrt(max(1, len(side.values(trial))))
    return exp(t_quantile(CONFIDENCE, spread.degrees) * error)


def replaced(earlier: Side, later: Side) -> dict[str, tuple[frozenset[FlagValue], frozenset[FlagValue]]]:
    """Settings whose values in the two studies have nothing in common: a new drafter, a new path of a model."""
    ours, theirs = earlier.settings, later.settings
    return {name: (ours[name], theirs[name]) for name in ours if name in theirs and not ours[name] & theirs[name]}


def matched(earlier: Side, later: Side) -> list[Matched]:
    """Configurations that both have measured, apart from what was replaced; the largest gain first."""
    apart = set(replaced(earlier, later))
    ours = _by_settings(earlier.drafting, apart)
    theirs = _by_settings(later.drafting, apart)
    found = [
        Matched(trial, theirs[key], ratio)
        for key, trial in ours.items()
        if key in theirs and (ratio := change(earlier, later, (trial, theirs[key]))) is not None
    ]
    return sorted(found, key=lambda each: (-each.change.ratio, each.earlier.number))


def overall(pairs: Sequence[Matched]) -> Change | None:
    """The geometric mean of the pairs' ratios; its interval is drawn from how much they differ. None for one."""
    logs = [math.log(pair.change.ratio) for pair in pairs]
    if len(logs) < 2:
        return None
    mean = sum(logs) / len(logs)
    variance = sum((each - mean) ** 2 for each in logs) / (len(logs) - 1)
    width = t_quantile(CONFIDENCE, len(logs) - 1) * math.sqrt(variance / len(logs))
    return Change(exp(mean), exp(mean - width), exp(mean + width))


def _by_settings(trials: Sequence[TrialRecord], apart: set[str]) -> dict[tuple[object, ...], TrialRecord]:
    """By everything but what is `apart`. Of several trials that differ only in that, the first."""
    found: dict[tuple[object, ...], TrialRecord] = {}
    for trial in trials:
        key = tuple(sorted((n, repr(v)) for n, v in _settings(trial).items() if n not in apart))
        found.setdefault(key, trial)
    return found


def _settings(trial: TrialRecord) -> dict[str, FlagValue]:
    config = trial.canonical
    return {**config.flags, **{f"env.{name}": value for name, value in config.env.items()}}


def _mean_log(values: Sequence[float]) -> float:
    return sum(map(math.log, values)) / len(values)
