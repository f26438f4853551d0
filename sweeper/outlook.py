"""What a study's trials say now: where the sweep stands, whether the search goes on, whom to compare with.

All that is asked again and again after each launch, while hardly a trial has changed. So the last answer is kept
here beside what it was drawn from, and holds while that is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from sweeper.asking import Asking
from sweeper.deciding.best_so_far import reference
from sweeper.deciding.comparable import comparable
from sweeper.deciding.hosts import on_scale_of
from sweeper.deciding.plan import Progress, Step, next_step, num_planned, progress
from sweeper.deciding.sharing import CLOSING_HOST, Ranking, scale_host
from sweeper.records import Reference, TrialRecord, TrialState
from sweeper.samplers.choice import PHYSICS, SamplerSettings
from sweeper.samplers.physics import is_enough
from sweeper.spec import BudgetSpec
from sweeper.storing.storage import StudyStore

Answer = TypeVar("Answer")


class Kept(Generic[Answer]):
    """An answer with what it was drawn from; another one is drawn when that differs."""

    def __init__(self) -> None:
        self._drawn: tuple[tuple[object, ...], Answer] | None = None

    def of(self, drawn_from: tuple[object, ...], draw: Callable[[], Answer]) -> Answer:
        """The answer that is drawn from this."""
        if self._drawn is None or self._drawn[0] != drawn_from:
            self._drawn = drawn_from, draw()
        return self._drawn[1]


class Outlook:
    """Of one study. Reads its trials, and changes nothing."""

    def __init__(self, store: StudyStore, asking: Asking, settings: SamplerSettings, ranking: Ranking) -> None:
        self._store = store
        self._asking = asking
        self._learns_gains = settings.name == PHYSICS
        self._ranking = ranking
        self._progress: Kept[Progress] = Kept()
        self._step: Kept[Step | None] = Kept()

    def progress(self, budget: BudgetSpec, host: str) -> Progress:
        """Where the sweep stands; values are on the scale of `host`, if that is named."""
        trials = self._store.trials()
        left = self._store.database.patiently(lambda: self.anything_left(trials, budget))
        closing = self.scale_host(trials)
        hosts = (host or closing, closing)
        drawn_from = (_weighty(trials), num_planned(trials, budget, left), budget, left, hosts)

        def seen_on(name: str) -> Progress:
            objective, gate = self._ranking.objective, self._ranking.gate
            return progress(on_scale_of(trials, objective, name), budget, objective, left, gate)

        def draw() -> Progress:
            ours = seen_on(hosts[0])
            if hosts[0] == closing:
                return ours
            return replace(ours, launches_left=seen_on(closing).launches_left)  # where finalists are confirmed

        return self._progress.of(drawn_from, draw)

    def next_step(self, trials: tuple[TrialRecord, ...], budget: BudgetSpec) -> Step | None:
        """The next launch of a study's only worker, or None when the sweep is complete."""
        objective, gate = self._ranking.objective, self._ranking.gate
        left = self.anything_left(trials, budget)
        return self._step.of((trials, budget, left), lambda: next_step(trials, budget, objective, left, gate))

    def search_is_over(self, budget: BudgetSpec) -> str:
        """Why the search ended before its budget was spent, in words; empty while it goes on."""
        trials = self._store.trials()
        if any(t.state is TrialState.RUNNING for t in trials) or not self._is_enough(budget):
            return ""
        told = (t.forecast.remaining_text for t in reversed(trials) if t.forecast is not None)
        return f"the search ends: {next(filter(None, told))} (budget.least_gain_pct={budget.least_gain_pct:g})"

    def anything_left(self, trials: Sequence[TrialRecord], budget: BudgetSpec) -> bool:
        """Whether the search goes on: something is untried, and worth a restart."""
        return not self._is_enough(budget) and self._asking.anything_left(trials)

    def _is_enough(self, budget: BudgetSpec) -> bool:
        """Whether too little is expected of all that is untested. What a person enqueued is measured anyway."""
        if not budget.least_gain_pct or not self._learns_gains or self._asking.has_waiting():
            return False
        return is_enough(self._store.optuna, budget.least_gain_pct / 100)

    def reference(self, trials: Sequence[TrialRecord], host: str) -> Reference | None:
        """Whom a launch of the search on `host` is compared with, to end early when that leaves no hope."""
        objective = self._ranking.objective
        seen = comparable(on_scale_of(trials, objective, host))[0]
        return reference(seen, objective, self._ranking.gate.admits(seen))

    def scale_host(self, trials: Sequence[TrialRecord]) -> str:
        """Whose scale holds for all; empty before the baseline was measured."""
        return scale_host(trials, self._ranking.objective, self.closing_host)

    @property
    def closing_host(self) -> str:
        """The host on which finalists are confirmed; empty before that begins."""
        return str(self._store.fact(CLOSING_HOST) or "")


def _weighty(trials: Sequence[TrialRecord]) -> tuple[TrialRecord, ...]:
    """The trials that say something: one that has just begun does not."""
    return tuple([t for t in trials if t.launches or t.state is not TrialState.RUNNING or t.is_baseline])
