"""What may still be launched with the time and the energy that are left, and what is kept back for the end. Pure.

The search ends when going on would leave too little for the confirmation; launching the close ones again ends so,
too; the confirmation itself goes on for as long as a launch fits. Each end holds for the night: otherwise a quick
launch later on would begin the search anew and make the confirmation before it worthless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sweeper.deciding.durations import BASELINE, Learned, kind_of
from sweeper.deciding.fresh import MIN_ROUNDS
from sweeper.deciding.plan import Step
from sweeper.records import Purpose, TrialRecord, TrialState
from sweeper.spec import BudgetSpec

CONFIRM_SHARE = 0.5
"""Of what a night has in all, at most this is kept back for the confirmation: a short night has fewer rounds."""

SEARCH, RECHECKS, CONFIRMATION = "search", "rechecks", "confirmation"
"""What is left out, once it was, for the rest of the night."""

Peek = Callable[[BudgetSpec], Step | None]


@dataclass(frozen=True)
class Purse:
    """One thing that runs out: what is `left` of it, what the night has of it in all, what a launch takes.

    `first`: what must be left for a launch while none has been measured. How long measuring takes is not known
    then; a launch that is still under way at the end is abandoned.
    """

    name: str
    left: float
    whole: float
    learned: Learned
    first: float
    is_time: bool = False


@dataclass(frozen=True)
class Decision:
    """`budget`: what the next launch is chosen under; None: nothing fits any more. `cut`: what is left out.

    `short_of`: the names of the purses that were too empty for something.
    """

    budget: BudgetSpec | None
    cut: frozenset[str]
    short_of: tuple[str, ...] = ()


def afford(
    peek: Peek, budget: BudgetSpec, trials: Sequence[TrialRecord], purses: Sequence[Purse], cut: frozenset[str]
) -> Decision:
    """What the next launch is chosen under, given what was `cut` before.

    `peek(budget)` tells what the next launch would be. With nothing left to do the budget is as it was.
    """
    if not purses:
        return Decision(budget, cut)
    short: list[str] = []
    if CONFIRMATION not in cut and (missing := _cannot_confirm(budget, trials, purses, cut)):
        cut, short = cut | {CONFIRMATION}, [*short, *missing]
    while True:
        asked = under(budget, trials, cut)
        step = peek(asked)
        if step is None:
            return Decision(asked, cut, tuple(dict.fromkeys(short)))
        missing = [purse.name for purse in purses if not _fits(step, purse, asked, trials, cut)]
        if not missing:
            return Decision(asked, cut, tuple(dict.fromkeys(short)))
        short += missing
        if (left_out := _next_cut(step, trials, cut)) is None:
            return Decision(None, cut, tuple(dict.fromkeys(short)))
        cut = cut | {left_out}


def under(budget: BudgetSpec, trials: Sequence[TrialRecord], cut: frozenset[str]) -> BudgetSpec:
    """The budget without what is left out."""
    update: dict[str, int] = {}
    if SEARCH in cut:
        update["trials"] = max(1, len(trials))
    if RECHECKS in cut:
        update["shortlist"] = 0
    if CONFIRMATION in cut:
        update["confirm_launches"] = 0
    return budget.model_copy(update=update)


def _next_cut(step: Step, trials: Sequence[TrialRecord], cut: frozenset[str]) -> str | None:
    """What to leave out when this step does not fit; None when nothing after it can fit either."""
    if not trials or CONFIRMATION in cut or any(trial.state is TrialState.RUNNING for trial in trials):
        return None
    if step.purpose in (Purpose.SEARCH, Purpose.CONTROL) and SEARCH not in cut:
        return SEARCH
    if step.purpose in (Purpose.RECHECK, Purpose.CONTROL) and RECHECKS not in cut:
        return RECHECKS
    return None


def _fits(
    step: Step, purse: Purse, budget: BudgetSpec, trials: Sequence[TrialRecord], cut: frozenset[str]
) -> bool:
    """Whether the launch, and what is kept back behind it, can be paid for."""
    learned = purse.learned
    if not learned.known:
        return purse.left >= purse.first
    one = learned.upper(_kind(step, trials))
    begun = any(trial.state is TrialState.RUNNING for trial in trials)
    if step.purpose is Purpose.CONFIRM or not budget.confirm_launches or begun:
        return purse.left >= one
    return purse.left >= one + kept_back(purse, budget, _num_scored(trials), searching=SEARCH not in cut)


def kept_back(purse: Purse, budget: BudgetSpec, num_scored: int, *, searching: bool = True) -> float:
    """What is kept back for the end once so many configurations have a score: to choose finalists and confirm."""
    finalists = _num_finalists(budget, num_scored)
    rounds = _num_rounds(purse, budget, finalists)
    rechecks = _num_rechecks(budget, num_scored) if searching else 0
    return purse.learned.total(rounds, rounds * finalists + rechecks)


def _cannot_confirm(
    budget: BudgetSpec, trials: Sequence[TrialRecord], purses: Sequence[Purse], cut: frozenset[str]
) -> list[str]:
    """The purses that do not even hold the fewest launches that confirm anything; asked before the search ends."""
    if not budget.confirm_launches or SEARCH in cut or _is_confirming(trials):
        return []
    finalists = _num_finalists(budget, _num_scored(trials))
    return [
        purse.name
        for purse in purses
        if purse.learned.known and purse.left < purse.learned.total(MIN_ROUNDS, MIN_ROUNDS * finalists)
    ]


def _is_confirming(trials: Sequence[TrialRecord]) -> bool:
    """Whether the newest launch is a confirming one."""
    launches = [launch for trial in trials for launch in trial.launches]
    newest = max(launches, key=lambda launch: launch.started_at, default=None)
    return newest is not None and newest.purpose is Purpose.CONFIRM


def _kind(step: Step, trials: Sequence[TrialRecord]) -> str | None:
    """The kind of the launch; None for a configuration that is not chosen yet."""
    trial = next((trial for trial in trials if trial.number == step.trial_number), None)
    if trial is None:
        return None
    return BASELINE if trial.is_baseline else kind_of(trial.canonical, trials[0].canonical)


def _num_scored(trials: Sequence[TrialRecord]) -> int:
    return sum(trial.state is TrialState.COMPLETE for trial in trials[1:])


def _num_finalists(budget: BudgetSpec, num_scored: int) -> int:
    return min(budget.finalists, 1 + num_scored)


def _num_rounds(purse: Purse, budget: BudgetSpec, finalists: int) -> int:
    """Rounds of the confirmation to keep something back for."""
    one_round = purse.learned.total(1, finalists)
    affordable = int(CONFIRM_SHARE * purse.whole / one_round) if one_round else budget.confirm_launches
    return min(budget.confirm_launches, max(MIN_ROUNDS, affordable))


def _num_rechecks(budget: BudgetSpec, num_scored: int) -> int:
    """About so many launches choose the finalists: half of those that could be on the shortlist are too slow."""
    found = min(budget.shortlist, num_scored)
    return (found + 1) // 2 if found > budget.finalists else 0
