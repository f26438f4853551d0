"""The lossless gate: who may not win because it may write other text than the baseline, or does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress

from sweeper.deciding.per_trial import PerTrial
from sweeper.outputs import BaselineOutputs, OutputComparison, compare_outputs
from sweeper.records import TrialRecord

Admits = Callable[[TrialRecord], bool]
"""Whether a trial may win."""


@dataclass(frozen=True)
class Gate:
    """`allow_lossy`: all may win.

    `seen` keeps what was found of each trial: all of them are asked about after each launch, and few have changed.
    """

    allow_lossy: bool = False
    seen: Seen = field(default_factory=lambda: Seen(), compare=False, repr=False)

    def objections(self, trial: TrialRecord, baseline: TrialRecord) -> tuple[str, ...]:
        """Why the trial cannot win unless lossy ones may; empty for one that writes what the baseline writes.

        Texts that part after a while are no objection: near-ties do that. Other texts from the first words on are.
        """
        return _objections(trial, compare_outputs(trial, baseline))

    def remark(self, trial: TrialRecord, baseline: TrialRecord) -> str:
        """How the trial's texts differ from the baseline's, in words; empty when they do not."""
        return compare_outputs(trial, baseline).text

    def admits(self, trials: Sequence[TrialRecord]) -> Admits:
        """Who of `trials` may win; the baseline is their first."""
        if self.allow_lossy:
            return everyone
        if not trials:
            return everyone
        barred = self.seen.barred(trials)
        return lambda trial: trial.number not in barred


class Seen:
    """Which trials are barred, found anew for those whose launches or whose measure, the baseline, changed."""

    def __init__(self) -> None:
        self._measure: PerTrial[BaselineOutputs] = PerTrial(BaselineOutputs)
        self._basis: tuple[object, ...] = ()
        self._is_barred: PerTrial[bool] = PerTrial(lambda trial: False)

    def barred(self, trials: Sequence[TrialRecord]) -> frozenset[int]:
        """Numbers of those of `trials`, whose first is the baseline, that may not win."""
        (baseline,) = self._measure.of(trials[:1])
        if baseline.basis != self._basis:
            self._basis, self._is_barred = baseline.basis, PerTrial(lambda trial: _is_barred(trial, baseline))
        rivals = trials[1:]
        return frozenset(compress((trial.number for trial in rivals), self._is_barred.of(rivals)))


def _is_barred(trial: TrialRecord, baseline: BaselineOutputs) -> bool:
    return any(launch.lossy for launch in trial.measured) or baseline.corrupts(trial)


def _objections(trial: TrialRecord, found: OutputComparison) -> tuple[str, ...]:
    reasons = dict.fromkeys(reason for launch in trial.measured for reason in launch.lossy)
    return (*reasons, found.text) if found.corrupt else tuple(reasons)


STRICT = Gate()
"""As is the default of a sweep."""


def everyone(_trial: TrialRecord) -> bool:
    """All may win."""
    return True
