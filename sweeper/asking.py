"""Makes the next trial of a study, or takes up one that was begun: distinct, legal, and each only once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import optuna
from optuna.trial import TrialState as OptunaState

from sweeper.books import Books
from sweeper.records import TrialRecord
from sweeper.samplers.choice import Listed, SamplerSettings, make_factory
from sweeper.samplers.distinct import DistinctSampler, SpaceExhausted
from sweeper.samplers.encoding import suggest
from sweeper.searching.candidates import Candidates
from sweeper.spec import ServerConfig
from sweeper.storing.storage import StudyStore

_EXHAUSTED = "exhausted_at"
"""After so many trials nothing untried was found; more trials (enqueued ones) make it worth another look."""


class Asking:
    """Asks Optuna for trials. `searching`: the study as its sampler sees it; `books`: kept in that."""

    def __init__(
        self, store: StudyStore, candidates: Candidates, baseline: ServerConfig, sampler: SamplerSettings
    ) -> None:
        self._store = store
        self._candidates = candidates
        self._baseline = baseline
        listed = Listed(candidates.distributions, self._untried)
        self.searching = store.with_sampler(
            DistinctSampler(
                factory=make_factory(sampler, listed),
                seed=sampler.seed,
                propose=candidates.propose,
                fresh=lambda values: self._is_fresh(values),
                untried=self._untried,
            )
        )
        self.books = Books(store, self.searching)
        self._tried: Collection[str] = frozenset()
        self._asked: optuna.Trial | None = None

    def know(self, trials: Sequence[TrialRecord]) -> None:
        """These trials are tried, or under way: none of them is proposed again."""
        self._tried = frozenset(trial.key for trial in trials if trial.key)

    def anything_left(self, trials: Sequence[TrialRecord]) -> bool:
        """Whether something may be untried."""
        if self._store.fact(_EXHAUSTED) == len(trials):
            return False
        return self._candidates.anything_left({trial.key for trial in trials})

    def has_waiting(self) -> bool:
        """Whether a trial that a person enqueued waits."""
        return bool(self._store.optuna.get_trials(deepcopy=False, states=(OptunaState.WAITING,)))

    def new_trial(self) -> int | None:
        """The number of a trial that is now begun; None when nothing untried was found."""
        try:
            if not self._store.optuna.get_trials(deepcopy=False):
                return self._add_baseline()
            self._asked = self.searching.ask()
            return self._asked.number
        except SpaceExhausted:
            unplanned = self._store.optuna.get_trials(deepcopy=False)[-1]
            self.books.leave_out(unplanned.number, OptunaState.FAIL)
            self._store.set_fact(_EXHAUSTED, len(self._store.trials()))
            return None

    def configuration(self, number: int) -> ServerConfig:
        """The configuration of an unfinished trial; values that a crash left unsaid are proposed again."""
        if number == 0:
            return self._baseline
        trial, known = self._asked, self._store.frozen(number)._trial_id
        if trial is None or trial._trial_id != known:
            trial = optuna.trial.Trial(self.searching, known)
        return self._candidates.requested(self._candidates.values(lambda name, dist: suggest(trial, name, dist)))

    def canonical(self, requested: ServerConfig) -> ServerConfig:
        """The configuration after the engine's rewrites."""
        return self._candidates.canonical(requested)

    def left_out_as_duplicate(self, number: int, key: str, trials: Sequence[TrialRecord]) -> bool:
        """Whether another of the `trials` has this configuration: only one that a person enqueued can.

        It is left out.
        """
        twins = [t for t in trials if t.key == key and t.number != number]
        if not twins or number == 0:
            return False
        twin = self._store.frozen(twins[0].number)
        state = twin.state if twin.state in (OptunaState.COMPLETE, OptunaState.PRUNED) else OptunaState.FAIL
        self.books.leave_out(number, state, twin.value if state is OptunaState.COMPLETE else None)
        return True

    def _add_baseline(self) -> int:
        """Trial 0 searches nothing, so it is added as it is instead of being sampled."""
        self._store.optuna.add_trial(optuna.trial.create_trial(state=OptunaState.RUNNING))
        return 0

    def _untried(self) -> list[dict[str, Any]]:
        """Legal configurations that no trial has, in the order of the space; empty if they cannot be listed."""
        return self._candidates.untried(self._tried)

    def _is_fresh(self, values: Mapping[str, Any]) -> bool:
        key = self._candidates.key(values)
        return key is not None and key not in self._tried
