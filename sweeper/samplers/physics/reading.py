"""What finished trials say, each of them read once: in a study of thousands one proposal asks for all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from optuna.trial import FrozenTrial

from sweeper.garbage import stays
from sweeper.samplers.physics.forecast import Forecast, stored_forecast
from sweeper.samplers.physics.ledger import Key, Rulebook
from sweeper.samplers.physics.observation import Observation, Observe, Spelling


@dataclass(frozen=True)
class Reading:
    """One finished trial.

    key: the configuration that it has taken; None for one that is illegal or not whole. seen: None where it says
    nothing of its configuration. told: its forecast with the log throughput that was then measured.
    """

    trial: FrozenTrial
    key: Key | None
    seen: Observation | None
    told: tuple[Forecast, float] | None


class Reader:
    """Reads the trials of one study at a time. A finished trial does not change; another one is another object."""

    def __init__(self, observe: Observe, spelling: Spelling, rules: Rulebook) -> None:
        self._observe, self._spelling, self._rules = observe, spelling, rules
        self._known: dict[int, Reading] = {}

    def readings(self, finished: Iterable[FrozenTrial]) -> list[Reading]:
        """Of these trials, in their order."""
        num_before = len(self._known)
        found = [self._reading(trial) for trial in finished]
        stays(len(self._known) - num_before)
        return found

    def _reading(self, trial: FrozenTrial) -> Reading:
        known = self._known.get(trial.number)
        if known is None or known.trial is not trial:
            seen = self._observe(trial)
            key = self._rules.key_of_whole(self._spelling.to_config(trial.params))
            known = self._known[trial.number] = Reading(trial, key, seen, _told(trial, seen))
        return known


def _told(trial: FrozenTrial, seen: Observation | None) -> tuple[Forecast, float] | None:
    forecast = stored_forecast(trial)
    if forecast is None or seen is None or seen.throughput is None:
        return None
    return forecast, math.log(seen.throughput)
