"""What to measure next, from what has been measured: baseline, search, the close ones again, then the finalists.

Pure, and drawn from the study alone, so that a crash in any phase loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.deciding.comparable import comparable, differing
from sweeper.deciding.confirm import confirmations
from sweeper.deciding.course import best_so_far, last_failures, luck_pct
from sweeper.deciding.fresh import attempts, before_confirming, fresh_since
from sweeper.deciding.launches import lost_to_host, with_launches
from sweeper.deciding.lossless import STRICT, Gate
from sweeper.deciding.shortlist import Shortlist, shortlist
from sweeper.deciding.values import mean_of
from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState, duration_s
from sweeper.spec import BudgetSpec
from sweeper.statistics.stats import pooled_variance

MAX_ROUNDS_AGAIN = 3
"""A host on which something changes again and again is confirmed so many times over, and then no more."""


@dataclass(frozen=True)
class Step:
    """The next launch. `trial_number` is None for a new trial, which the sampler proposes."""

    purpose: Purpose
    trial_number: int | None


@dataclass(frozen=True)
class Progress:
    """Where the sweep stands. `launches_left` is an estimate until the end: what is clear ends early.

    `night_left_s`: so long until the night ends; `night_ends`: when, in words (`at 07:00`). None and empty: never.
    `mean_launch_s`, `launch_sd_s`: of the `num_timed` measured launches. `course`: the best value after each of
    the trials; `luck_pct`: how far chance alone may lift the best above the baseline; `failures`: the newest.
    """

    trials_done: int
    trials_total: int
    launches_left: int
    mean_launch_s: float | None
    baseline_value: float | None
    best_trial: TrialRecord | None
    best_value: float | None
    night_left_s: float | None = None
    night_ends: str = ""
    launch_sd_s: float = 0.0
    num_timed: int = 0
    luck_pct: float | None = None
    course: tuple[float, ...] = ()
    failures: tuple[LaunchRecord, ...] = ()

    @property
    def eta_s(self) -> float | None:
        """Estimated seconds to the end, which is that of the night at the latest; None while neither is known."""
        needed = None if self.mean_launch_s is None else self.launches_left * self.mean_launch_s
        return min((s for s in (needed, self.night_left_s) if s is not None), default=None)


def next_step(
    trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str, space_left: bool, gate: Gate = STRICT
) -> Step | None:
    """The next launch of a study's only worker, or None when the sweep is complete.

    A trial that was begun and not told comes first. `space_left`: whether an untried configuration exists. `gate`
    says who may win; nobody else is launched again. Only what the verdict can compare confirms.
    """
    running = next((trial for trial in trials if trial.state is TrialState.RUNNING), None)
    if running is not None:
        return resumed(running)
    if not trials:
        return Step(Purpose.BASELINE, None)
    if searches_on(trials, budget, space_left):
        return search_step(trials, budget)
    steps = closing_steps(trials, budget, objective, gate)
    return with_control(steps[0], trials, budget) if steps else None


def resumed(trial: TrialRecord) -> Step:
    """The launch of a trial that was begun and not told."""
    return Step(Purpose.BASELINE if trial.is_baseline else Purpose.SEARCH, trial.number)


def searches_on(trials: Sequence[TrialRecord], budget: BudgetSpec, space_left: bool) -> bool:
    """Whether a new trial may be begun: those that are under way count."""
    return len(trials) < budget.trials and space_left


def search_step(trials: Sequence[TrialRecord], budget: BudgetSpec) -> Step:
    """A new trial, or the baseline again when that is due."""
    due = control_is_due(trials, budget.baseline_every)
    return Step(Purpose.CONTROL, 0) if due else Step(Purpose.SEARCH, None)


def closing_steps(
    trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str, gate: Gate = STRICT
) -> tuple[Step, ...]:
    """What is to be launched after the search, each of which may be next; empty when the sweep is complete.

    Several only while close ones are launched again: finalists are confirmed one after the other.
    """
    if not budget.confirm_launches:
        return ()
    chosen = shortlist(trials, budget, objective, gate.admits(trials))
    if chosen.pending:
        return tuple(Step(Purpose.RECHECK, number) for number in chosen.pending)
    confirming = _confirming(trials, chosen, budget, objective)
    if not confirming:
        return ()
    return (Step(Purpose.CONFIRM, 0 if _has_changed(trials) else confirming[0]),)


def with_control(step: Step, trials: Sequence[TrialRecord], budget: BudgetSpec) -> Step:
    """A step after the search, or before a close one is launched again the baseline, when that is due."""
    is_due = step.purpose is Purpose.RECHECK and control_is_due(trials, _every_recheck(budget))
    return Step(Purpose.CONTROL, 0) if is_due else step


def control_is_due(trials: Sequence[TrialRecord], every: int) -> bool:
    """Whether so many launches of others were made since the baseline's last one, or what they are compared by
    has changed; never with 0.

    One that was lost to the host is made again; one that failed otherwise is not, until the next is due.
    """
    return every > 0 and (len(_since_baseline(trials)) >= every or _has_changed(trials))


def _since_baseline(trials: Sequence[TrialRecord]) -> list[LaunchRecord]:
    """The others' launches after the last one of the baseline that was not lost to the host, on its host."""
    baseline, *others = trials
    known = [launch for launch in baseline.launches if not lost_to_host(launch)]
    last = max(known, key=lambda launch: launch.started_at, default=None)
    return [
        launch
        for trial in others
        for launch in trial.launches
        if last is not None and launch.started_at > last.started_at and launch.host == last.host
    ]


def _has_changed(trials: Sequence[TrialRecord]) -> bool:
    """Whether launches since the baseline's last one cannot be compared with it: a new driver, say, or engine."""
    known = max(trials[0].measured, key=lambda launch: launch.started_at, default=None)
    later = [launch for launch in _since_baseline(trials) if launch.ok]
    return known is not None and any(differing(known.provenance, launch.provenance) for launch in later)


def _confirming(trials: Sequence[TrialRecord], chosen: Shortlist, budget: BudgetSpec, objective: str) -> list[int]:
    """Trial numbers still to be confirmed. Finalists may be chosen by launches that are not compared any more."""
    compared = comparable(trials)[0]
    seen = {trial.number: trial for trial in compared}
    everything = {trial.number: trial for trial in trials}
    since = fresh_since(trials, chosen.finalists)
    made = [len(attempts(everything[number], since)) for number in (0, *chosen.finalists)]
    if max(made) >= MAX_ROUNDS_AGAIN * budget.confirm_launches:
        return []
    baseline, *rivals = [
        seen.get(number, with_launches(everything[number], ())) for number in (0, *chosen.finalists)
    ]
    before = before_confirming(compared, objective, chosen.finalists)
    return confirmations(baseline, rivals, budget.confirm_launches, objective, before)


def _every_recheck(budget: BudgetSpec) -> int:
    """Twice as often as in the search: these launches of the baseline are what the finalists are compared with."""
    return (budget.baseline_every + 1) // 2


def progress(
    trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str, space_left: bool, gate: Gate = STRICT
) -> Progress:
    """Where the sweep stands, for the live view and for the end."""
    finished = [trial for trial in trials if trial.state is not TrialState.RUNNING]
    total = num_planned(trials, budget, space_left)
    durations = [duration_s(launch.started_at, launch.ended_at) for trial in trials for launch in trial.measured]
    compared = comparable(trials)[0]
    scored = [
        (value, trial)
        for trial in compared
        if trial.state is TrialState.COMPLETE and (value := mean_of(trial, objective)) is not None
    ]
    rivals = [(value, trial) for value, trial in scored if not trial.is_baseline]
    best_value, best = max(rivals, key=lambda pair: pair[0], default=(None, None))
    return Progress(
        trials_done=len(finished),
        trials_total=total,
        launches_left=_launches_left(trials, budget, objective, total - len(finished), gate),
        mean_launch_s=sum(durations) / len(durations) if durations else None,
        baseline_value=next((value for value, trial in scored if trial.is_baseline), None),
        best_trial=best,
        best_value=best_value,
        launch_sd_s=math.sqrt(pooled_variance([durations])[0]),
        num_timed=len(durations),
        luck_pct=luck_pct(compared, best, len(rivals), objective) if best else None,
        course=best_so_far(value for value, _ in rivals),
        failures=last_failures(trials),
    )


def num_planned(trials: Sequence[TrialRecord], budget: BudgetSpec, space_left: bool) -> int:
    """How many trials the sweep will have when its search has ended."""
    return max(budget.trials if space_left else min(budget.trials, len(trials)), len(trials))


def _launches_left(
    trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str, to_search: int, gate: Gate
) -> int:
    """An estimate. While the search goes on the shortlist is taken to be as long as for what was found so far."""
    chosen = shortlist(trials, budget, objective, gate.admits(trials)) if trials else Shortlist()
    full_confirmation = budget.confirm_launches * (budget.finalists + 1)
    if not budget.confirm_launches:
        rechecks, confirming = 0, 0
    elif chosen.pending:
        later = _rounds(max(budget.finalists, chosen.field_size // 2), budget.finalists)
        rechecks, confirming = len(chosen.pending) + later, full_confirmation
    elif to_search:
        rechecks, confirming = 0, full_confirmation
    else:
        rechecks, confirming = 0, len(_confirming(trials, chosen, budget, objective))
    controls = to_search // budget.baseline_every if budget.baseline_every else 0
    controls += -(-rechecks // _every_recheck(budget)) if budget.baseline_every else 0
    return to_search + controls + rechecks + confirming


def _rounds(field: int, wanted: int) -> int:
    """Launches that it takes to halve a field of so many until as many as are wanted are left."""
    launches = 0
    while field > wanted:
        launches += field
        field = max(wanted, field // 2)
    return launches


def start_limit_s(trials: Sequence[TrialRecord], configured_s: float) -> float:
    """How long a start may take: `configured_s` until three have been seen, then what they have taught.

    That is twice the longest so far and two minutes (another attention backend may compile its kernels first),
    never more than `configured_s`.
    """
    launches = [launch for trial in trials for launch in trial.measured]
    starts = [launch.metrics["start_s"] for launch in launches if "start_s" in launch.metrics]
    return min(configured_s, 2 * max(starts) + 120) if len(starts) >= 3 else configured_s
