"""Which configurations are launched again before the finalists are known. Pure, and drawn from the study alone.

After the search the best of many single launches is mostly the luckiest. Those that the noise between starts
cannot tell from it are launched again, and the better half once more, until there are only finalists left.
Confirming launches never take part: who is a finalist must not change while finalists are confirmed.
"""

from __future__ import annotations

import datetime
import math
import operator
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.deciding.drift import drift_of
from sweeper.deciding.launches import lost_to_host, usable, with_launches
from sweeper.deciding.lossless import Admits
from sweeper.deciding.noise import corrected, expected_launch_noise
from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState
from sweeper.spec import BudgetSpec
from sweeper.stats import t_quantile

NEAR = 0.975
"""One-sided: of two equal configurations the worse one is kept with this probability."""


@dataclass(frozen=True)
class Shortlist:
    """`finalists`, best first, are final once nothing is `pending`: trials to launch again, in this order.

    `field_size`: how many were launched again in the present round, or are to be.
    """

    finalists: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()
    field_size: int = 0


def shortlist(trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str, admits: Admits) -> Shortlist:
    """Who is in the running after what has been measured, `trials[0]` being the baseline.

    With no `budget.shortlist` nothing is launched again, but what was counts.
    """
    candidates = [trial for trial in trials[1:] if _is_candidate(trial, objective) and admits(trial)]
    return _LAST.of([trials[0], *candidates], budget, objective)


class _Last:
    """The last shortlist, and what it was drawn from: it is asked for several times between two launches."""

    def __init__(self) -> None:
        self._asked: tuple[BudgetSpec, str] | None = None
        self._trials: Sequence[TrialRecord] = ()
        self._found = Shortlist()

    def of(self, trials: Sequence[TrialRecord], budget: BudgetSpec, objective: str) -> Shortlist:
        """The shortlist of these candidates, the baseline before them."""
        same = self._asked == (budget, objective) and len(trials) == len(self._trials)
        if not same or not all(map(operator.is_, trials, self._trials)):
            self._found = _drawn([_without_confirmations(trial) for trial in trials], budget, objective)
            self._asked, self._trials = (budget, objective), trials
        return self._found


_LAST = _Last()


def _drawn(chosen_by: Sequence[TrialRecord], budget: BudgetSpec, objective: str) -> Shortlist:
    candidates = chosen_by[1:]
    if not candidates:
        return Shortlist()
    moment = max(
        launch.started_at for trial in candidates for launch in trial.measured if _chooses(launch, budget)
    )
    view = _View([chosen_by[0], *candidates], objective, moment)
    ranked = view.ranked([trial.number for trial in candidates])
    field = view.near_best(ranked)[: budget.shortlist] if view.any_hope(ranked) else []
    by_number = {trial.number: trial for trial in candidates}
    for round_ in range(1, len(chosen_by) + 1):
        if len(field) <= budget.finalists:
            break
        again = {number: _rechecks(by_number[number])[:round_] for number in field}
        if pending := tuple(number for number in field if len(again[number]) < round_):
            return Shortlist(tuple(ranked[: budget.finalists]), pending, len(field))
        moment = max(moment, *(made[-1].started_at for made in again.values()))
        view = _View([chosen_by[0], *candidates], objective, moment)
        ranked = view.ranked(field)
        field = view.near_best(ranked)[: max(budget.finalists, len(field) // 2)]
    return Shortlist(finalists=tuple(ranked[: budget.finalists]))


class _View:
    """The values as they were known at a moment: what came later must not change what was decided then."""

    def __init__(self, trials: Sequence[TrialRecord], objective: str, moment: datetime.datetime) -> None:
        known = [_until(trial, moment) for trial in trials]
        drift = drift_of(known[0].launches, objective)
        self._spread = expected_launch_noise(known, objective, drift)
        self._logs = {
            trial.number: [
                math.log(corrected(launch, objective, drift))
                for launch in trial.measured
                if usable(launch, objective)
            ]
            for trial in known
        }

    def ranked(self, numbers: Sequence[int]) -> list[int]:
        """Best first."""
        return sorted(numbers, key=lambda number: (-self._mean(number), number))

    def near_best(self, ranked: Sequence[int]) -> list[int]:
        """Those that noise cannot tell from the best; it is the first of them."""
        best = ranked[0]
        return [n for n in ranked if self._mean(best) - self._mean(n) <= self._reach(best, n)]

    def any_hope(self, ranked: Sequence[int]) -> bool:
        """Whether the best may be above the baseline, with all the luck that noise allows."""
        if not self._logs[0]:
            return True
        return self._mean(ranked[0]) + self._reach(ranked[0], 0) > self._mean(0)

    def _mean(self, number: int) -> float:
        return statistics.fmean(self._logs[number])

    def _reach(self, one: int, other: int) -> float:
        """How far apart two equal configurations can be."""
        share = 1 / len(self._logs[one]) + 1 / len(self._logs[other])
        return t_quantile(NEAR, self._spread.degrees) * self._spread.pct / 100 * math.sqrt(share)


def _is_candidate(trial: TrialRecord, objective: str) -> bool:
    """Whether it has a first value. An estimate is none: its launch was ended because it had no hope."""
    first = next((launch for launch in trial.measured if launch.purpose is not Purpose.CONFIRM), None)
    return trial.state is TrialState.COMPLETE and first is not None and usable(first, objective)


def _chooses(launch: LaunchRecord, budget: BudgetSpec) -> bool:
    return launch.purpose is not Purpose.RECHECK or not budget.shortlist


def _rechecks(trial: TrialRecord) -> list[LaunchRecord]:
    """Its further launches; one lost to the host is made again, one that failed otherwise is not."""
    return [x for x in trial.launches if x.purpose is Purpose.RECHECK and not lost_to_host(x)]


def _without_confirmations(trial: TrialRecord) -> TrialRecord:
    return with_launches(trial, [launch for launch in trial.launches if launch.purpose is not Purpose.CONFIRM])


def _until(trial: TrialRecord, moment: datetime.datetime) -> TrialRecord:
    return with_launches(trial, [launch for launch in trial.launches if launch.started_at <= moment])
