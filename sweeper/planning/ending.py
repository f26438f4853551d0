"""How many launches are to go, when they end, and what of them a night holds. Pure."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace

from sweeper.deadline import NightSpan
from sweeper.deciding.affordable import Purse, kept_back
from sweeper.deciding.durations import Learned
from sweeper.deciding.fresh import MIN_ROUNDS
from sweeper.deciding.plan import Progress
from sweeper.planning.model import Deadline, Launches, LaunchTime
from sweeper.spec import BudgetSpec

_NINE_OF_TEN = 1.645


def within(budget: BudgetSpec, to_try: int | None) -> BudgetSpec:
    """The budget with no more trials than the space has configurations, the baseline counted."""
    if to_try is None or 1 + to_try >= budget.trials:
        return budget
    return budget.model_copy(update={"trials": 1 + to_try})


def launches_to_go(progress: Progress, budget: BudgetSpec, *, is_complete: bool) -> Launches:
    """What is to be launched. The least: the search, and the fewest launches that confirm; the most: all rounds.

    Configurations too close to the best to be told apart are launched again before the confirmation; how many
    nobody knows: none at least, as many as half of the shortlist at most.
    """
    if is_complete:
        return Launches(search=0, controls=0, confirm=0, expected=0, at_least=0, at_most=0)
    search = progress.trials_total - progress.trials_done
    controls = search // budget.baseline_every if budget.baseline_every else 0
    finalists = min(budget.finalists, max(1, progress.trials_total - 1))
    confirm = max(0, progress.launches_left - search - controls)
    fewest = min(confirm, MIN_ROUNDS * (finalists + 1))
    again = (min(budget.shortlist, progress.trials_total - 1) + 1) // 2 if search and confirm else 0
    return Launches(
        search=search,
        controls=controls,
        confirm=confirm,
        expected=progress.launches_left,
        at_least=search + controls + fewest,
        at_most=search + controls + confirm + again,
    )


def ends(
    launches: Launches, time: LaunchTime, spread_s: float, now: datetime.datetime
) -> tuple[datetime.datetime | None, datetime.datetime | None, datetime.datetime | None]:
    """When the last launch ends if nothing cuts the sweep short: expected, earliest, latest; None: unknown.

    `spread_s`: standard deviation of one launch.
    """
    if time.mean_s is None or time.low_s is None or time.high_s is None or not launches.expected:
        return None, None, None
    low = launches.at_least * time.low_s - _NINE_OF_TEN * spread_s * math.sqrt(launches.at_least)
    high = launches.at_most * time.high_s + _NINE_OF_TEN * spread_s * math.sqrt(launches.at_most)
    seconds = (launches.expected * time.mean_s, max(0.0, low), high)
    expected, earliest, latest = (now + datetime.timedelta(seconds=round(s)) for s in seconds)
    return expected, earliest, latest


def deadlines(
    purses: Sequence[Purse], learned: Learned, budget: BudgetSpec, launches: Launches, span: NightSpan | None
) -> tuple[Deadline, ...]:
    """What each limit holds of the search, once what confirms the finalists is kept back.

    `learned`: what launches take in seconds, also where only another study knows; it counts for limits of time.
    """
    return tuple(
        _deadline(replace(purse, learned=learned) if purse.is_time else purse, budget, launches, span)
        for purse in purses
    )


def _deadline(purse: Purse, budget: BudgetSpec, launches: Launches, span: NightSpan | None) -> Deadline:
    needed = launches.search + launches.controls
    kept = holds = None
    if purse.learned.known:
        holds, kept = _held(purse, budget, needed)
    return Deadline(
        setting=purse.name,
        ends_at=span.ends_at if span is not None and purse.name.startswith("budget.until") else None,
        left_s=purse.left if purse.is_time else 0.0,
        kept_back_s=kept if purse.is_time else None,
        holds=holds,
        needed=needed,
    )


def _held(purse: Purse, budget: BudgetSpec, needed: int) -> tuple[int, float]:
    """How many search launches fit, and what is kept back behind them. A launch takes what it took on average."""
    values = [value for values in purse.learned.by_kind.values() for value in values]
    one = sum(values) / len(values)
    holds, kept = 0, kept_back(purse, budget, 0) if budget.confirm_launches else 0.0
    for count in range(1, needed + 1):
        back = kept_back(purse, budget, count) if budget.confirm_launches else 0.0
        if count * one + back > purse.left:
            break
        holds, kept = count, back
    return holds, kept
