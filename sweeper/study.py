"""The study: what to measure next, what has been measured, and what that means.

Optuna is driven with ask and tell. A trial that was begun and never told stays RUNNING and is simply asked for
again, under its own number; so Ctrl-C, a crash and a retry all take the same way.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import optuna
from optuna.trial import TrialState as OptunaState

from sweeper.books import Books
from sweeper.candidates import Candidates
from sweeper.deciding.best_so_far import reference
from sweeper.deciding.comparable import comparable
from sweeper.deciding.lossless import STRICT, Gate
from sweeper.deciding.plan import Progress, Step, next_step, progress
from sweeper.deciding.verdict import Simplicity, Verdict, decide
from sweeper.errors import FailureKind
from sweeper.fingerprint import Fingerprint, require_same, with_new_facts
from sweeper.policy import POLICY
from sweeper.records import LaunchRecord, Proposal, Purpose, Reference, TrialRecord, TrialState
from sweeper.samplers.choice import PHYSICS, Listed, SamplerSettings, make_factory
from sweeper.samplers.distinct import DistinctSampler, SpaceExhausted
from sweeper.samplers.encoding import suggest
from sweeper.samplers.physics import is_enough
from sweeper.spec import BudgetSpec, ServerConfig
from sweeper.storage import StudyStore

_EXHAUSTED = "exhausted_at"
"""After so many trials nothing untried was found; more trials (enqueued ones) make it worth another look."""


@dataclass(frozen=True)
class Ranking:
    """What configurations are ranked by, and who may win."""

    objective: str
    gate: Gate = STRICT


class Study:
    """One search on one space. The only place that asks and tells Optuna (with its books)."""

    def __init__(
        self,
        store: StudyStore,
        candidates: Candidates,
        baseline: ServerConfig,
        sampler: SamplerSettings,
        ranking: Ranking,
    ) -> None:
        self.store = store
        self.name = store.name
        self.objective = ranking.objective
        self._gate = ranking.gate
        self._candidates = candidates
        self._settings = sampler
        self.baseline = baseline
        listed = Listed(candidates.distributions, self._untried)
        self._optuna = store.with_sampler(
            DistinctSampler(
                factory=make_factory(sampler, listed),
                seed=sampler.seed,
                propose=candidates.propose,
                fresh=lambda values: self._is_fresh(values),
                untried=self._untried,
            )
        )
        self._books = Books(store, self._optuna)
        self._tried: frozenset[str] = frozenset()
        self._asked: optuna.Trial | None = None

    def require_same(self, current: Fingerprint) -> None:
        """Keep the fingerprint in a new study; raises StudyMismatch when an old one has another."""
        stored = self.store.fact("fingerprint")
        if stored is not None:
            require_same(self.name, stored, current)
        self.store.set_fact("fingerprint", with_new_facts(stored or current, current))
        self.store.set_fact("allow_lossy", self._gate.allow_lossy)

    def searched_otherwise(self) -> str:
        """In words, how the last start searched if that was otherwise; else empty. Keeps how this one does."""
        last, now = self.store.fact("search"), [self._settings.name, self._settings.seed]
        self.store.set_fact("search", now)
        if last in (None, now):
            return ""
        said = [f"{name} with seed {seed}" for name, seed in (last, now)]
        return f"the search was {said[0]} and is now {said[1]}; what has been measured stays and counts"

    def search_is_over(self, budget: BudgetSpec) -> str:
        """Why the search ended before its budget was spent, in words; empty while it goes on."""
        if self._running() or not self._enough(budget):
            return ""
        told = (t.forecast.remaining_text for t in reversed(self.trials()) if t.forecast is not None)
        return f"the search ends: {next(filter(None, told))} (budget.least_gain_pct={budget.least_gain_pct:g})"

    def never_legal(self) -> list[str]:
        """Values of the space that no legal configuration has, one line each."""
        return self._candidates.never_legal()

    def reconcile(self) -> list[str]:
        """Finish what a dead process left half done; what was found, one line each."""
        notes = []
        for trial in self._running():
            if trial.launches and self._settle(trial, trial.launches[-1]):
                notes.append(f"trial {trial.number} had been measured: finished from its record")
            else:
                notes.append(f"trial {trial.number} was interrupted: it is measured again")
        return notes

    def ask(self, budget: BudgetSpec) -> Proposal | None:
        """The next launch; None when the budget is spent or nothing is left, and the finalists are confirmed."""
        while (step := self._next_step(budget)) is not None:
            number = self._new_trial() if step.trial_number is None else step.trial_number
            if number is not None and (proposal := self._begin(step, number)) is not None:
                return proposal
        return None

    def save(self, record: LaunchRecord, artifacts: Mapping[str, bytes]) -> LaunchRecord:
        """Write a launch down. Saving it again (with the time its stop took) replaces it."""
        return self.store.save_launch(record, artifacts)

    def tell(self, proposal: Proposal, record: LaunchRecord) -> None:
        """Follow the policy table: score, infeasible, failed, or put back to be launched again."""
        if proposal.purpose.settles:
            trial = next(t for t in self.trials() if t.number == proposal.trial_number)
            self._settle(trial, record)

    def release(self, proposal: Proposal) -> None:
        """A launch was abandoned on request: the trial is put back, and nothing is held against it."""
        if proposal.purpose.settles:
            self._books.put_back(proposal.trial_number)

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every trial, as recorded."""
        return self.store.trials()

    def artifact(self, trial_number: int, name: str) -> bytes:
        """The content of an artifact. Raises KeyError when there is none of that name."""
        return self.store.artifact(trial_number, name)

    @property
    def identity(self) -> str:
        """A random word of this very study, to tell it from another one of the same name."""
        if (known := self.store.fact("identity")) is None:
            self.store.set_fact("identity", known := secrets.token_hex(8))
        return str(known)

    @property
    def facts(self) -> Mapping[str, str]:
        """What all trials have in common: the study's fingerprint."""
        return self.store.fact("fingerprint") or {}

    def verdict_text(self) -> str | None:
        """The last verdict in words; None before there is one."""
        verdict = self.store.fact("verdict")
        return verdict["text"] if verdict else None

    def progress(self, budget: BudgetSpec) -> Progress:
        """Where the sweep stands."""
        trials = self.trials()
        return progress(trials, budget, self.objective, self._anything_left(trials, budget), self._gate)

    def verdict(self, simplicity: Simplicity) -> Verdict:
        """The verdict on what has been measured so far; kept in the study, and drawn anew only when that grows."""
        trials = self.trials()
        count = sum(len(trial.launches) for trial in trials)
        drawn_from = [count, self._gate.allow_lossy, version("specsweep")]
        if (stored := self.store.fact("verdict")) and self.store.fact("verdict_drawn_from") == drawn_from:
            return Verdict.model_validate(stored)
        verdict = decide(comparable(trials)[0], self.objective, simplicity, self._gate)
        self.store.set_fact("verdict", verdict.model_dump(mode="json"))
        self.store.set_fact("verdict_drawn_from", drawn_from)
        return verdict

    def _next_step(self, budget: BudgetSpec) -> Step | None:
        trials = self.trials()
        self._tried = frozenset(trial.key for trial in trials if trial.key)
        return next_step(trials, budget, self.objective, self._anything_left(trials, budget), self._gate)

    def _anything_left(self, trials: tuple[TrialRecord, ...], budget: BudgetSpec) -> bool:
        """Whether the search goes on: something is untried, and worth a restart."""
        if self.store.fact(_EXHAUSTED) == len(trials) or self._enough(budget):
            return False
        return self._candidates.anything_left({trial.key for trial in trials})

    def _enough(self, budget: BudgetSpec) -> bool:
        """Whether too little is expected of all that is untested. What a person enqueued is measured anyway."""
        if not budget.least_gain_pct or self._settings.name != PHYSICS or self._has_waiting():
            return False
        return is_enough(self.store.optuna, budget.least_gain_pct / 100)

    def _has_waiting(self) -> bool:
        return bool(self.store.optuna.get_trials(deepcopy=False, states=(OptunaState.WAITING,)))

    def _running(self) -> list[TrialRecord]:
        return [trial for trial in self.trials() if trial.state is TrialState.RUNNING]

    def _untried(self) -> list[dict[str, Any]]:
        """Legal configurations that no trial has, in the order of the space; empty if they cannot be listed."""
        return self._candidates.untried(self._tried)

    def _is_fresh(self, values: Mapping[str, Any]) -> bool:
        key = self._candidates.key(values)
        return key is not None and key not in self._tried

    def _new_trial(self) -> int | None:
        try:
            if not self.store.optuna.get_trials(deepcopy=False):
                return self._add_baseline()
            self._asked = self._optuna.ask()
            return self._asked.number
        except SpaceExhausted:
            unplanned = self.store.optuna.get_trials(deepcopy=False)[-1]
            self._books.leave_out(unplanned.number, OptunaState.FAIL)
            self.store.set_fact(_EXHAUSTED, len(self.trials()))
            return None

    def _add_baseline(self) -> int:
        """Trial 0 searches nothing, so it is added as it is instead of being sampled."""
        self._optuna.add_trial(optuna.trial.create_trial(state=OptunaState.RUNNING))
        return 0

    def _begin(self, step: Step, number: int) -> Proposal | None:
        """The proposal for a launch of trial `number`; None when that trial has just been settled without one."""
        trial = next(t for t in self.trials() if t.number == number)
        base = self._candidates.base  # the study holds no secrets
        requested, canonical = trial.requested.with_secrets_of(base), trial.canonical.with_secrets_of(base)
        if step.purpose.settles:
            if not trial.key:
                requested = self._configuration(number)
                canonical = self._candidates.canonical(requested)
            if self._gave_up(trial) or self._is_duplicate(number, canonical.key()):
                return None
            self._books.begin(number, requested, canonical)
        return Proposal(
            trial_number=number,
            launch_number=1 + max((launch.launch_number for launch in trial.launches), default=-1),
            purpose=step.purpose,
            requested=requested,
            canonical=canonical,
            reference=self._reference() if step.purpose is Purpose.SEARCH else None,
            forecast=trial.forecast if step.purpose is Purpose.SEARCH else None,
        )

    def _reference(self) -> Reference | None:
        """Whom a launch of the search is compared with, to end early when that leaves no hope."""
        seen = comparable(self.trials())[0]
        return reference(seen, self.objective, self._gate.admits(seen))

    def _gave_up(self, trial: TrialRecord) -> bool:
        """Whether specsweep died so often during this trial that it is put aside. The baseline never is."""
        deaths = self._books.begun(trial.number) - len(trial.launches)
        if trial.is_baseline or deaths < (POLICY[FailureKind.INTERRUPTED].max_launches or 0):
            return False
        self._books.give_up(trial.number, FailureKind.INTERRUPTED)
        return True

    def _configuration(self, number: int) -> ServerConfig:
        """The configuration of an unfinished trial; values that a crash left unsaid are proposed again."""
        if number == 0:
            return self.baseline
        trial = self._asked
        if trial is None or trial.number != number:
            trial = optuna.trial.Trial(self._optuna, self.store.frozen(number)._trial_id)
        return self._candidates.requested(self._candidates.values(lambda name, dist: suggest(trial, name, dist)))

    def _is_duplicate(self, number: int, key: str) -> bool:
        """Whether another trial has this configuration: only one that a person enqueued can. It is left out."""
        twins = [t for t in self.trials() if t.key == key and t.number != number]
        if not twins or number == 0:
            return False
        twin = self.store.frozen(twins[0].number)
        state = twin.state if twin.state in (OptunaState.COMPLETE, OptunaState.PRUNED) else OptunaState.FAIL
        self._books.leave_out(number, state, twin.value if state is OptunaState.COMPLETE else None)
        return True

    def _settle(self, trial: TrialRecord, record: LaunchRecord) -> bool:
        """Tell Optuna how the trial ended, unless it is to be launched again. Whether it was told."""
        if record.failure is None:
            self._books.score(trial.number, record, self.objective)
            return True
        kind = record.failure.kind
        limit = POLICY[kind].max_launches
        same = sum(1 for launch in trial.launches if launch.failure is not None and launch.failure.kind is kind)
        if trial.is_baseline or limit is None or same < limit:
            return False
        self._books.give_up(trial.number, kind)
        return True
