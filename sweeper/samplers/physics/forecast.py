"""What was expected of a trial when it was proposed, and why it was proposed. Kept with the trial."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optuna.trial import FrozenTrial

from sweeper.samplers.physics.prediction import Prediction

FORECAST_ATTR = "specsweep:forecast"
"""The trial's system attribute."""

_QUANTILE = 1.645
"""Nine of ten measurements should fall between low and high."""


@dataclass(frozen=True)
class Estimate:
    """An expected value, and the interval in which nine of ten measurements should fall."""

    mean: float
    low: float
    high: float

    @property
    def log_deviation(self) -> float:
        """Standard deviation of the value's logarithm."""
        return math.log(self.high / self.mean) / _QUANTILE


@dataclass(frozen=True)
class Forecast:
    """What to expect of one configuration.

    throughput: tokens per second. step_time_ms: milliseconds per decode step. p_start: chance that the server
    starts. expected_gain: what it should add to the best throughput known, relative, chance of starting
    included (0.01: one percent). remaining_gain: the largest expected gain of any untested configuration at
    that moment. Both are None where nothing can be said yet. reason: why it was proposed, in words.
    by_model: expected log throughput and its standard deviation by each model, to tell later which is better.
    """

    throughput: Estimate | None
    accept_length: Estimate | None
    step_time_ms: Estimate | None
    p_start: float
    reason: str
    expected_gain: float | None = None
    remaining_gain: float | None = None
    by_model: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimates:
    """Of throughput, accept_length and step time, as in a Forecast."""

    throughput: Estimate | None = None
    accept_length: Estimate | None = None
    step_time_ms: Estimate | None = None


def estimates(prediction: Prediction, noise: float) -> Estimates:
    """The estimates of the first of the predicted configurations. noise: variance of a measured log throughput."""
    accept = time = None
    if prediction.accept is not None:
        accept = _estimate(prediction.accept[0][0], prediction.accept[1][0], least=1.0)
    if prediction.time is not None:
        time = _estimate(prediction.time[0][0], prediction.time[1][0])
    throughput = _estimate(prediction.throughput[0], prediction.throughput_variance[0] + noise)
    return Estimates(throughput, accept, time)


def to_json(forecast: Forecast) -> dict[str, Any]:
    """The forecast as JSON values; None for what is not known."""
    shown: dict[str, Any] = {
        name: None if estimate is None else [estimate.mean, estimate.low, estimate.high]
        for name, estimate in (
            ("throughput", forecast.throughput),
            ("accept_length", forecast.accept_length),
            ("step_time_ms", forecast.step_time_ms),
        )
    }
    shown |= {"p_start": forecast.p_start, "reason": forecast.reason}
    shown |= {"expected_gain": forecast.expected_gain, "remaining_gain": forecast.remaining_gain}
    return shown | {"by_model": {name: list(pair) for name, pair in forecast.by_model.items()}}


def stored_forecast(trial: FrozenTrial) -> Forecast | None:
    """The forecast kept with a trial; None for a trial that the physics sampler did not plan."""
    stored = trial.system_attrs.get(FORECAST_ATTR)
    if stored is None:
        return None
    known = {name: stored.get(name) for name in ("throughput", "accept_length", "step_time_ms")}
    return Forecast(
        **{name: None if numbers is None else Estimate(*numbers) for name, numbers in known.items()},
        p_start=stored["p_start"],
        reason=stored["reason"],
        expected_gain=stored["expected_gain"],
        remaining_gain=stored["remaining_gain"],
        by_model={name: (pair[0], pair[1]) for name, pair in stored["by_model"].items()},
    )


def _estimate(mean: float, variance: float, least: float = 0.0) -> Estimate:
    margin = _QUANTILE * math.sqrt(variance)
    return Estimate(math.exp(mean), max(least, math.exp(mean - margin)), math.exp(mean + margin))
