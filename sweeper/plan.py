"""What to measure next, from what has been measured: the baseline, then the search, then the finalists.

Pure, and drawn from the study alone, so that a crash in any phase loses nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.policy import is_host_fault
from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState, duration_s
from sweeper.spec import BudgetSpec


@dataclass(frozen=True)
class Step:
    """The next launch. `trial_number` is None for a new trial, which the sampler proposes."""

    purpose: Purpose
    trial_number: int | None


@dataclass(frozen=True)
class Progress:
    """Where the sweep stands. `launches_left` is an estimate until the search ends: finalists may be fewer."""

    trials_done: int
    trials_total: int
    launches_left: int
    mean_launch_s: float | None
    baseline_value: float | None
    best_trial: TrialRecord | None
    best_value: float | None

    @property
    def eta_s(self) -> float | None:
        """Estimated seconds to the end; None before the first launch has ended."""
        return None if self.mean_launch_s is None else self.launches_left * self.mean_launch_s


def next_step(trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str, space_left: bool) -> Step | None:
    """The next launch, or None when the sweep is complete.

    A trial that was begun and not told comes first. `space_left`: whether an untried configuration exists.
    """
    running = next((trial for trial in trials if trial.state is TrialState.RUNNING), None)
    if running is not None:
        return Step(Purpose.BASELINE if running.is_baseline else Purpose.SEARCH, running.number)
    if not trials:
        return Step(Purpose.BASELINE, None)
    if len(trials) < budget.trials and space_left:
        return Step(Purpose.SEARCH, None)
    pending = confirmations(trials, budget, objective)
    return Step(Purpose.CONFIRM, pending[0]) if pending else None


def confirmations(trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str) -> list[int]:
    """Trial numbers of the confirming launches still to make, interleaved: baseline, finalists, baseline, ..."""
    chosen = finalists(trials, budget, objective)
    if not chosen:
        return []
    since = fresh_since(chosen)
    made = {
        trial.number: sum(launch.started_at > since and _counts(launch) for launch in trial.launches)
        for trial in (trials[0], *chosen)
    }
    rounds = range(1, budget.confirm_launches + 1)
    return [number for number_of_launches in rounds for number, n in made.items() if n < number_of_launches]


def finalists(trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str) -> list[TrialRecord]:
    """The best trials by their first measurement, best first; the baseline, always measured again, is not one."""
    scores = {
        trial.number: launch.metrics[objective]
        for trial in trials
        for launch in trial.measured[:1]
        if trial.state is TrialState.COMPLETE and not trial.is_baseline and objective in launch.metrics
    }
    best = sorted(scores, key=lambda number: (-scores[number], number))[: budget.finalists]
    by_number = {trial.number: trial for trial in trials}
    return [by_number[number] for number in best]


def fresh_since(chosen: Sequence[TrialRecord]) -> datetime.datetime:
    """Only launches after this moment confirm: when the last of the finalists was first measured.

    A finalist that a later, larger budget brings is thus compared with launches of the same hour, not with a
    baseline of last week. `chosen` must not be empty and each must have been measured.
    """
    return max(trial.measured[0].started_at for trial in chosen)


def _counts(launch: LaunchRecord) -> bool:
    """Whether a launch used up one confirmation; one that failed because of the host is made again."""
    lost_to_host = launch.failure is not None and is_host_fault(launch.failure.kind)
    return launch.purpose is Purpose.CONFIRM and not lost_to_host


def progress(trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str, space_left: bool) -> Progress:
    """Where the sweep stands, for the live view and for the end."""
    finished = [trial for trial in trials if trial.state is not TrialState.RUNNING]
    total = budget.trials if space_left else min(budget.trials, len(trials))
    to_search = max(0, max(total, len(trials)) - len(finished))
    confirming = len(confirmations(trials, budget, objective)) if not to_search else _all_confirmations(budget)
    durations = [duration_s(launch.started_at, launch.ended_at) for trial in trials for launch in trial.measured]
    scored = [
        (value, trial)
        for trial in finished
        if trial.state is TrialState.COMPLETE and (value := trial.mean(objective)) is not None
    ]
    rivals = [(value, trial) for value, trial in scored if not trial.is_baseline]
    best_value, best = max(rivals, key=lambda pair: pair[0], default=(None, None))
    return Progress(
        trials_done=len(finished),
        trials_total=max(total, len(trials)),
        launches_left=to_search + confirming,
        mean_launch_s=sum(durations) / len(durations) if durations else None,
        baseline_value=next((value for value, trial in scored if trial.is_baseline), None),
        best_trial=best,
        best_value=best_value,
    )


def _all_confirmations(budget: BudgetSpec) -> int:
    return budget.confirm_launches * (budget.finalists + 1)


def start_limit_s(trials: Sequence[TrialRecord], configured_s: float) -> float:
    """How long a start may take: `configured_s` until three have been seen, then what they have taught.

    That is twice the longest so far and two minutes (another attention backend may compile its kernels first),
    never more than `configured_s`.
    """
    launches = [launch for trial in trials for launch in trial.measured]
    starts = [launch.metrics["start_s"] for launch in launches if "start_s" in launch.metrics]
    return min(configured_s, 2 * max(starts) + 120) if len(starts) >= 3 else configured_s
