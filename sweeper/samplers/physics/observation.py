"""What one finished trial says, and how it is read from an Optuna trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from sweeper.samplers.physics.space import Config, Value


def same(values: Config) -> Config:
    """The spelling of a study whose parameters are the server's own."""
    return values


@dataclass(frozen=True)
class Spelling:
    """How a configuration is written in the study: parameters suggested there, and back.

    Only what is searched appears; both directions must undo each other.
    """

    to_params: Callable[[Config], Mapping[str, Value]] = same
    to_config: Callable[[Mapping[str, Any]], Config] = same


@dataclass(frozen=True)
class Observation:
    """One measured (or failed) configuration.

    throughput: output tokens per second. accept_length: tokens kept per verify step, bonus token included.
    survival: share of verify steps that accepted at least 1, 2, … drafts. What was not measured is None; so is
    what makes no sense (not finite, not positive, an accept_length below 1).
    failed: the configuration did not start, or died: its own fault.
    """

    config: Config
    throughput: float | None = None
    accept_length: float | None = None
    survival: tuple[float, ...] | None = None
    failed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "throughput", _number(self.throughput, 0.0))
        object.__setattr__(self, "accept_length", _number(self.accept_length, 1.0 - 1e-9))
        if self.survival is not None and not all(0 <= share <= 1 for share in self.survival):
            object.__setattr__(self, "survival", None)


def survival(histogram: object) -> tuple[float, ...] | None:
    """Shares of steps that accepted at least 1, 2, … drafts. histogram[n]: steps that accepted n drafts.

    None for a histogram without a step, or with a count that is no number, and for what is no list of counts.
    """
    if isinstance(histogram, str | Mapping) or not isinstance(histogram, Iterable):
        return None
    try:
        counts = [float(count) for count in histogram]
    except (TypeError, ValueError):
        return None
    total = sum(counts)
    if not math.isfinite(total) or total <= 0 or min(counts) < 0:
        return None
    return tuple(sum(counts[depth:]) / total for depth in range(1, len(counts)))


Observe = Callable[[FrozenTrial], Observation | None]


@dataclass(frozen=True)
class UserAttributes:
    """Reads a finished trial's value and user attributes. None: the trial says nothing of its configuration.

    The attributes are `accept_length` (or `accept_len`) and `accept_histogram` (or `accept_hist`: steps by drafts
    accepted). A violated constraint means that the configuration failed; Optuna's FAIL and a pruned trial
    without a constraint say nothing.
    """

    spelling: Spelling = field(default_factory=Spelling)

    def __call__(self, trial: FrozenTrial) -> Observation | None:
        """The trial's observation."""
        config = self.spelling.to_config(trial.params)
        if any(value > 0 for value in trial.constraints.values()):
            return Observation(config, failed=True)
        if trial.state is not TrialState.COMPLETE or trial.value is None:
            return None
        attrs = trial.user_attrs
        histogram = attrs.get("accept_histogram", attrs.get("accept_hist"))
        return Observation(
            config,
            throughput=trial.value,
            accept_length=attrs.get("accept_length", attrs.get("accept_len")),
            survival=survival(histogram),
        )


def from_user_attrs(trial: FrozenTrial) -> Observation | None:
    """What a trial of a study that spells its parameters as the server does says; see UserAttributes."""
    return UserAttributes()(trial)


def _number(value: object, above: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):  # numpy's numbers are Real as well
        return None
    number = float(value)
    return number if math.isfinite(number) and number > above else None
