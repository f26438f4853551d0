"""Which model to believe, from how well each predicted the latest trials before they were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from sweeper.samplers.physics.forecast import Forecast

PHYSICS, PLAIN = "physics", "plain"

_LATEST = 8
_LEAST = 6
_MARGIN = 0.3
"""How much better, in logarithms of the probability of what was seen, the plain model must have been."""

_LATEST_SURPRISES = 6
_SURPRISING = 2.5
"""Standard deviations: when the typical miss is larger, no model is to be believed."""

_WORST = 3.0
"""Standard deviations: a larger miss counts as this one, so that one surprise decides nothing."""


@dataclass(frozen=True)
class Trust:
    """believed: the model to use. astray: not even that one has predicted within its own error.

    widening: how many times larger its latest misses were than its own error, 1 at least.
    """

    believed: str
    astray: bool
    widening: float = 1.0


def judge(told: Sequence[tuple[Forecast, float]]) -> Trust:
    """told: forecasts in the order of their trials, each with the log throughput that was then measured."""
    newest = (
        [_surprise(forecast.by_model[name], seen) for name in (PHYSICS, PLAIN)]
        for forecast, seen in reversed(told)
        if PHYSICS in forecast.by_model and PLAIN in forecast.by_model
    )
    rows = list(islice(newest, _LATEST))
    if len(rows) < _LEAST:
        return Trust(PHYSICS, astray=False)
    misses = np.array(rows[::-1])
    size = np.minimum(_WORST, np.abs(misses[:, :, 0]))
    density = (-0.5 * size**2 - np.log(misses[:, :, 1])).mean(axis=0)
    plain = bool(density[1] > density[0] + _MARGIN)
    typical = float(np.median(np.abs(misses[-_LATEST_SURPRISES:, int(plain), 0])))
    widening = float(np.sqrt((size[:, int(plain)] ** 2).mean()))
    return Trust(PLAIN if plain else PHYSICS, typical > _SURPRISING, max(1.0, widening))


def _surprise(predicted: tuple[float, float], seen: float) -> tuple[float, float]:
    mean, deviation = predicted
    return (seen - mean) / deviation, deviation
