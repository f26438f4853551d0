"""What one of several workers on a study launches next. Pure, and drawn from the study and the leases alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sweeper.deciding.hosts import measured_on, on_scale_of
from sweeper.deciding.lossless import STRICT, Gate
from sweeper.deciding.plan import Step, closing_steps, resumed, search_step, searches_on, with_control
from sweeper.records import Purpose, TrialRecord, TrialState
from sweeper.spec import BudgetSpec

CLOSING_HOST = "closing_host"
"""The fact in which a shared study keeps the host on which its finalists are confirmed."""


@dataclass(frozen=True)
class Ranking:
    """What configurations are ranked by, and who may win."""

    objective: str
    gate: Gate = STRICT


@dataclass(frozen=True)
class Crew:
    """A worker's host, and what the other workers that live are doing.

    `busy`: trials that they launch now. `closing_host`: the host on which finalists are confirmed, empty before
    that begins; `is_closing`: whether a worker there lives.
    """

    host: str
    busy: frozenset[int] = frozenset()
    closing_host: str = ""
    is_closing: bool = False


@dataclass(frozen=True)
class Wait:
    """Nothing to launch now; what others do may bring something. `why`: in words."""

    why: str


def shared_step(
    trials: Sequence[TrialRecord], crew: Crew, budget: BudgetSpec, ranking: Ranking, space_left: bool
) -> Step | Wait | None:
    """The worker's next launch, or None when the sweep is complete.

    The host's own baseline comes first, without which nothing of it can be compared; then a trial that was begun,
    not told, and is nobody's; then the search, and, when no trial is under way any more, the close ones again.
    The finalists are confirmed by one host alone.
    """
    if not trials:
        return Step(Purpose.BASELINE, None)
    running = [trial for trial in trials if trial.state is TrialState.RUNNING]
    orphan = next((trial for trial in running if trial.number not in crew.busy), None)
    searching = searches_on(trials, budget, space_left)
    has_work = searching or orphan is not None or trials[0] in running
    if has_work and crew.host not in measured_on(trials, ranking.objective):
        return Step(Purpose.BASELINE, 0)
    if orphan is not None:
        return resumed(orphan)
    if searching:
        return search_step(on_scale_of(trials, ranking.objective, crew.host), budget)
    if running:
        return Wait("other workers still measure their last trials")
    return _closing(trials, crew, budget, ranking)


def scale_host(trials: Sequence[TrialRecord], objective: str, closing_host: str) -> str:
    """Whose scale holds for all: that of the host that confirms, else of the first that measured the baseline.

    Empty before the baseline was measured.
    """
    hosts = measured_on(trials, objective)
    return closing_host if closing_host in hosts else next(iter(hosts), "")


def _closing(
    trials: Sequence[TrialRecord], crew: Crew, budget: BudgetSpec, ranking: Ranking
) -> Step | Wait | None:
    """A launch after the search. All workers draw the same shortlist, on one scale."""
    objective = ranking.objective
    host = scale_host(trials, objective, crew.closing_host)
    steps = closing_steps(on_scale_of(trials, objective, host), budget, objective, ranking.gate)
    if not steps:
        return None
    if steps[0].purpose is Purpose.RECHECK:
        free = [step for step in steps if step.trial_number not in crew.busy]
        if free and crew.host in measured_on(trials, objective):
            return with_control(free[0], on_scale_of(trials, objective, crew.host), budget)
        return Wait("other workers launch the close ones again")
    if crew.is_closing and crew.host != crew.closing_host:
        return Wait(f"the finalists are launched in turn on host {crew.closing_host}")
    if crew.host not in measured_on(trials, objective):
        return Step(Purpose.BASELINE, 0)
    if crew.host == crew.closing_host:
        return steps[0]
    return _closing(trials, replace(crew, closing_host=crew.host, is_closing=True), budget, ranking)
