"""When to stop: no untested configuration is expected to bring more than a fraction of a percent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optuna.study import Study
from optuna.trial import FrozenTrial

from sweeper.samplers.physics.forecast import stored_forecast

LITTLE = 0.002
"""Relative: 0.2 %."""

PATIENCE = 3
"""The largest expected gain must have been little so many times in a row."""

LEAST_TRIALS = 8


def remaining_gain(study: Study) -> float | None:
    """What the most promising untested configuration was expected to add to the best, relative; None if unknown.

    It is what was known when the latest trial was planned, and includes the chance that the server does not start.
    """
    gains = _gains(study.get_trials(deepcopy=False))
    return gains[-1] if gains else None


def is_enough(study: Study, little: float = LITTLE, patience: int = PATIENCE, least: int = LEAST_TRIALS) -> bool:
    """Whether the remaining gain was below `little` for `patience` trials running, the study having `least`.

    Trials whose remaining gain is unknown (the opening, enqueued ones) are passed over.
    """
    trials = study.get_trials(deepcopy=False)
    latest = _gains(trials)[-patience:]
    return len(trials) >= least and len(latest) == patience and max(latest) < little


@dataclass(frozen=True)
class StopWhenLittleIsLeft:
    """An Optuna callback: `study.optimize(…, callbacks=[StopWhenLittleIsLeft()])`."""

    little: float = LITTLE
    patience: int = PATIENCE
    least: int = LEAST_TRIALS

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Stop the study when enough is known."""
        if is_enough(study, self.little, self.patience, self.least):
            study.stop()


def _gains(trials: Sequence[FrozenTrial]) -> list[float]:
    forecasts = [stored_forecast(trial) for trial in trials]
    return [f.remaining_gain for f in forecasts if f is not None and f.remaining_gain is not None]
