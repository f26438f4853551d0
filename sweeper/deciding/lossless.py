"""The lossless gate: who may not win because it may write other text than the baseline, or does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sweeper.outputs import BaselineOutputs, OutputComparison, compare_outputs
from sweeper.records import TrialRecord

Admits = Callable[[TrialRecord], bool]
"""Whether a trial may win."""


@dataclass(frozen=True)
class Gate:
    """`allow_lossy`: all may win."""

    allow_lossy: bool = False

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
        baseline = BaselineOutputs(trials[0])
        barred = {trial.number for trial in trials[1:] if _objections(trial, baseline.compare(trial))}
        return lambda trial: trial.number not in barred


def _objections(trial: TrialRecord, found: OutputComparison) -> tuple[str, ...]:
    reasons = dict.fromkeys(reason for launch in trial.measured for reason in launch.lossy)
    return (*reasons, found.text) if found.corrupt else tuple(reasons)


STRICT = Gate()
"""As is the default of a sweep."""


def everyone(_trial: TrialRecord) -> bool:
    """All may win."""
    return True
