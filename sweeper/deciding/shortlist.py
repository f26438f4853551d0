"""Which configurations are launched again before the finalists are known. Pure, and drawn from the study alone.

After the search the best of many single launches is mostly the luckiest. Those that the noise between starts
cannot tell from it are launched again, and the better half once more, until there are only finalists left.
Confirming launches never take part: who is a finalist must not change while finalists are confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.deciding.choosing import Choosing, choosing
from sweeper.deciding.launches import lost_to_host, usable
from sweeper.deciding.lossless import Admits
from sweeper.records import LaunchRecord, Purpose, TrialRecord, TrialState
from sweeper.spec import BudgetSpec


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
    if not candidates:
        return Shortlist()
    known = [trials[0], *candidates]
    left_out = Purpose.RECHECK if budget.shortlist else None
    moment = max(x.started_at for trial in candidates for x in choosing(trial) if x.purpose is not left_out)
    seen = Choosing(known, objective, moment)
    ranked = seen.ranked([trial.number for trial in candidates])
    field = seen.near_best(ranked)[: budget.shortlist] if seen.any_hope(ranked) else []
    by_number = {trial.number: trial for trial in candidates}
    for round_ in range(1, len(known) + 1):
        if len(field) <= budget.finalists:
            break
        again = {number: _rechecks(by_number[number])[:round_] for number in field}
        if pending := tuple(number for number in field if len(again[number]) < round_):
            return Shortlist(tuple(ranked[: budget.finalists]), pending, len(field))
        moment = max(moment, *(made[-1].started_at for made in again.values()))
        seen = Choosing(known, objective, moment)
        ranked = seen.ranked(field)
        field = seen.near_best(ranked)[: max(budget.finalists, len(field) // 2)]
    return Shortlist(finalists=tuple(ranked[: budget.finalists]))


def _is_candidate(trial: TrialRecord, objective: str) -> bool:
    """Whether it has a first value. An estimate is none: its launch was ended because it had no hope."""
    if trial.state is not TrialState.COMPLETE:
        return False
    known = choosing(trial)
    return bool(known) and usable(known[0], objective)


def _rechecks(trial: TrialRecord) -> list[LaunchRecord]:
    """Its further launches; one lost to the host is made again, one that failed otherwise is not."""
    return [x for x in trial.launches if x.purpose is Purpose.RECHECK and not lost_to_host(x)]
