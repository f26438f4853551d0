"""What is drawn from each trial alone: all are asked about after each launch, and few of them have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from sweeper.records import LaunchRecord, TrialRecord

T = TypeVar("T")


class PerTrial(Generic[T]):
    """Keeps what was drawn from each trial of one study, and draws anew from those whose launches have changed.

    `draw`: what it answers must depend on nothing else.
    """

    def __init__(self, draw: Callable[[TrialRecord], T]) -> None:
        self._draw = draw
        self._drawn: dict[int, tuple[tuple[LaunchRecord, ...], T]] = {}

    def of(self, trials: Sequence[TrialRecord]) -> list[T]:
        """What is drawn from each of the trials, in their order."""
        return [self._of(trial) for trial in trials]

    def _of(self, trial: TrialRecord) -> T:
        known = self._drawn.get(trial.number)
        if known is None or not same_launches(known[0], trial.launches):
            known = self._drawn[trial.number] = trial.launches, self._draw(trial)
        return known[1]


def same_launches(some: Sequence[LaunchRecord], others: Sequence[LaunchRecord]) -> bool:
    """Whether these are the very same records."""
    return some is others or (
        len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))
    )
