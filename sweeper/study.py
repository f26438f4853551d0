"""The study: what to measure next, what has been measured, and what that means.

Optuna is driven with ask and tell. A trial that was begun and never told stays RUNNING and is simply asked for
again, under its own number; so Ctrl-C, a crash and a retry all take the same way. Where several workers share the
study, a trial under another worker's lease is left alone (ownership.py), and whoever asks, saves or tells holds
the lock on the study (database.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sweeper.asking import Asking
from sweeper.candidates import Candidates
from sweeper.deciding.best_so_far import reference
from sweeper.deciding.comparable import comparable
from sweeper.deciding.hosts import on_scale_of, value_to_tell
from sweeper.deciding.plan import Progress, Step, next_step, progress
from sweeper.deciding.sharing import CLOSING_HOST, Crew, Wait, scale_host, shared_step
from sweeper.deciding.sharing import Ranking as Ranking
from sweeper.deciding.verdict import Simplicity, Verdict, decide
from sweeper.errors import FailureKind
from sweeper.fingerprint import Fingerprint
from sweeper.leases import LeaseLost
from sweeper.ownership import Ownership, Sole, still_there
from sweeper.policy import POLICY
from sweeper.records import LaunchRecord, Proposal, Purpose, Reference, TrialRecord, TrialState
from sweeper.samplers.choice import PHYSICS, SamplerSettings
from sweeper.samplers.physics import is_enough
from sweeper.spec import BudgetSpec, ServerConfig
from sweeper.storage import StudyStore
from sweeper.study_facts import identity_of, kept_verdict, require_same_settings


class Study:
    """One search on one space. The only place that asks and tells Optuna (with its books).

    `ownership`: whose the launches are; set by whoever shares the study. `waits_for`: after `ask` gave nothing,
    why it may give something later; empty when the sweep is complete.
    """

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
        self.baseline = baseline
        self.ownership: Ownership = Sole()
        self.waits_for = ""
        self._ranking = ranking
        self._gate = ranking.gate
        self._candidates = candidates
        self._settings = sampler
        self._asking = Asking(store, candidates, baseline, sampler)
        self._optuna, self._books = self._asking.searching, self._asking.books

    def require_same(self, current: Fingerprint) -> None:
        """Keep the fingerprint in a new study; raises StudyMismatch when an old one has another."""
        require_same_settings(self.store, current)
        self.store.set_fact("allow_lossy", self._gate.allow_lossy)

    def search_is_over(self, budget: BudgetSpec) -> str:
        """Why the search ended before its budget was spent, in words; empty while it goes on."""
        trials = self.trials()
        if any(t.state is TrialState.RUNNING for t in trials) or not self._enough(budget):
            return ""
        told = (t.forecast.remaining_text for t in reversed(trials) if t.forecast is not None)
        return f"the search ends: {next(filter(None, told))} (budget.least_gain_pct={budget.least_gain_pct:g})"

    def reconcile(self) -> list[str]:
        """Finish what a dead process left half done; what was found, one line each."""
        return self.store.database.exclusively(self._reconcile)

    def _reconcile(self) -> list[str]:
        notes = []
        for trial in self._orphans(self.ownership.crew(self._closing_host)):
            if self._finished_from_record(trial):
                notes.append(f"trial {trial.number} had been measured: finished from its record")
            else:
                notes.append(f"trial {trial.number} was interrupted: it is measured again")
        return notes

    def ask(self, budget: BudgetSpec) -> Proposal | None:
        """The next launch, now this worker's.

        None when the budget is spent or nothing is left, and the finalists are confirmed; or, where `waits_for`
        says so, when only other workers have something to launch now.
        """
        return self.store.database.exclusively(lambda: self._ask(budget))

    def _ask(self, budget: BudgetSpec) -> Proposal | None:
        while True:
            step = self._next_step(budget)
            self.waits_for = step.why if isinstance(step, Wait) else ""
            if not isinstance(step, Step):
                return None
            number = self._asking.new_trial() if step.trial_number is None else step.trial_number
            if number is not None and (proposal := self._begin(step, number)) is not None:
                return proposal

    def save(self, record: LaunchRecord, artifacts: Mapping[str, bytes]) -> LaunchRecord:
        """Write a launch down. Saving it again (with the time its stop took) replaces it.

        Raises LeaseLost when another worker has taken the launch over.
        """

        def write() -> LaunchRecord:
            self.ownership.require(record.trial_number, record.launch_number)
            return self.store.save_launch(record, artifacts)

        return self.store.database.exclusively(write)

    def tell(self, proposal: Proposal, record: LaunchRecord) -> None:
        """Follow the policy table: score, infeasible, failed, or put back to be launched again.

        Raises LeaseLost when another worker has taken the launch over.
        """

        def settle() -> None:
            trial = self._trial(proposal.trial_number)
            if proposal.purpose.settles and trial.state is TrialState.RUNNING:
                self.ownership.require(proposal.trial_number, proposal.launch_number)
                self._settle(trial, record)
            self.ownership.end(proposal.trial_number, proposal.launch_number)

        self.store.database.exclusively(settle)

    def release(self, proposal: Proposal) -> None:
        """A launch was abandoned on request: the trial is put back, and nothing is held against it."""

        def put_back() -> None:
            with suppress(LeaseLost):
                self.ownership.require(proposal.trial_number, proposal.launch_number)
                if proposal.purpose.settles and self._trial(proposal.trial_number).state is TrialState.RUNNING:
                    self._books.put_back(proposal.trial_number)
            self.ownership.end(proposal.trial_number, proposal.launch_number)

        self.store.database.exclusively(put_back)

    def keeps(self, what: str) -> bool:
        """Whether it is for this worker to do `what`, which one of all workers does."""
        return self.store.database.patiently(lambda: self.ownership.keeps(what))

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every trial, as recorded."""
        return self.store.trials()

    def compared(self) -> tuple[TrialRecord, ...]:
        """Every trial on the scale of one host, as the verdict compares them; of a single host as recorded."""
        trials = self.trials()
        return on_scale_of(trials, self.objective, self._scale_host(trials))

    def artifact(self, trial_number: int, name: str) -> bytes:
        """The content of an artifact. Raises KeyError when there is none of that name."""
        return self.store.artifact(trial_number, name)

    @property
    def identity(self) -> str:
        """A random word of this very study, to tell it from another one of the same name."""
        return identity_of(self.store)

    @property
    def facts(self) -> Mapping[str, str]:
        """What all trials have in common: the study's fingerprint."""
        return self.store.fact("fingerprint") or {}

    def verdict_text(self) -> str | None:
        """The last verdict in words; None before there is one."""
        verdict = self.store.fact("verdict")
        return verdict["text"] if verdict else None

    def progress(self, budget: BudgetSpec) -> Progress:
        """Where the sweep stands; values are on the scale of this worker's host."""
        trials = self.trials()
        left = self.store.database.patiently(lambda: self._anything_left(trials, budget))
        scale_host = self._scale_host(trials)
        host = self.ownership.host or scale_host
        seen = progress(on_scale_of(trials, self.objective, host), budget, self.objective, left, self._gate)
        if host == scale_host:
            return seen
        closing = on_scale_of(trials, self.objective, scale_host)  # finalists are confirmed on one host's scale
        return replace(
            seen, launches_left=progress(closing, budget, self.objective, left, self._gate).launches_left
        )

    def verdict(self, simplicity: Simplicity, cut_short: str = "") -> Verdict:
        """The verdict on what has been measured so far; kept in the study, and drawn anew only when that grows.
        `cut_short`, a sentence about what was left out as time or energy ran out, becomes part of it.
        """
        trials = self.trials()
        count = sum(len(trial.launches) for trial in trials)
        host = self._scale_host(trials)
        drawn_from = [count, self._gate.allow_lossy, host, *filter(None, [cut_short])]

        def draw() -> Verdict:
            verdict = decide(comparable(trials)[0], self.objective, simplicity, self._gate, host)
            return verdict.model_copy(
                update={"cut_short": cut_short, "text": f"{verdict.text} {cut_short}".rstrip()}
            )

        return kept_verdict(self.store, drawn_from, draw)

    def next_step(self, budget: BudgetSpec) -> Step | None:
        """What `ask` would launch under this budget, as far as it is known before the sampler is asked."""
        step = self.store.database.exclusively(lambda: self._next_step(budget))
        return step if isinstance(step, Step) else None

    def _next_step(self, budget: BudgetSpec) -> Step | Wait | None:
        trials = self.trials()
        crew = self.ownership.crew(self._closing_host)
        if crew is not None and [n for n in self._orphans(crew) if self._finished_from_record(n)]:
            trials = self.trials()
        self._asking.know(trials)
        left = self._anything_left(trials, budget)
        if crew is None:
            return next_step(trials, budget, self.objective, left, self._gate)
        step = shared_step(trials, crew, budget, self._ranking, left)
        if isinstance(step, Step) and step.purpose is Purpose.CONFIRM and crew.host != crew.closing_host:
            self.store.set_fact(CLOSING_HOST, crew.host)
        return step

    def _anything_left(self, trials: Sequence[TrialRecord], budget: BudgetSpec) -> bool:
        """Whether the search goes on: something is untried, and worth a restart."""
        return not self._enough(budget) and self._asking.anything_left(trials)

    def _enough(self, budget: BudgetSpec) -> bool:
        """Whether too little is expected of all that is untested. What a person enqueued is measured anyway."""
        if not budget.least_gain_pct or self._settings.name != PHYSICS or self._asking.has_waiting():
            return False
        return is_enough(self.store.optuna, budget.least_gain_pct / 100)

    @property
    def _closing_host(self) -> str:
        return str(self.store.fact(CLOSING_HOST) or "")

    def _scale_host(self, trials: Sequence[TrialRecord]) -> str:
        return scale_host(trials, self.objective, self._closing_host)

    def _trial(self, number: int) -> TrialRecord:
        return still_there(self.trials(), number)

    def _orphans(self, crew: Crew | None) -> list[TrialRecord]:
        """Trials that were begun, not told, and are under no living worker's lease."""
        running = [trial for trial in self.trials() if trial.state is TrialState.RUNNING]
        return [trial for trial in running if crew is None or trial.number not in crew.busy]

    def _begin(self, step: Step, number: int) -> Proposal | None:
        """The proposal for a launch of trial `number`; None when that trial has just been settled without one."""
        trial, base = self._trial(number), self._candidates.base  # the study holds no secrets
        requested, canonical = trial.requested.with_secrets_of(base), trial.canonical.with_secrets_of(base)
        if step.purpose.settles and trial.state is TrialState.RUNNING:
            if not trial.key:
                requested = self._asking.configuration(number)
                canonical = self._asking.canonical(requested)
            if self._gave_up(trial) or self._asking.left_out_as_duplicate(number, canonical.key()):
                return None
            self._books.begin(number, requested, canonical)
        return Proposal(
            trial_number=number,
            launch_number=self.ownership.begin(trial),
            purpose=step.purpose,
            requested=requested,
            canonical=canonical,
            reference=self._reference() if step.purpose is Purpose.SEARCH else None,
            forecast=trial.forecast if step.purpose is Purpose.SEARCH else None,
        )

    def _reference(self) -> Reference | None:
        """Whom a launch of the search is compared with, to end early when that leaves no hope."""
        seen = comparable(on_scale_of(self.trials(), self.objective, self.ownership.host))[0]
        return reference(seen, self.objective, self._gate.admits(seen))

    def _gave_up(self, trial: TrialRecord) -> bool:
        """Whether specsweep died so often during this trial that it is put aside. The baseline never is."""
        deaths = self._books.begun(trial.number) - len(trial.launches)
        if trial.is_baseline or deaths < (POLICY[FailureKind.INTERRUPTED].max_launches or 0):
            return False
        self._books.give_up(trial.number, FailureKind.INTERRUPTED)
        return True

    def _finished_from_record(self, trial: TrialRecord) -> bool:
        """Whether a trial that was not told had been settled by its last launch; it is told."""
        return bool(trial.launches) and self._settle(trial, trial.launches[-1])

    def _settle(self, trial: TrialRecord, record: LaunchRecord) -> bool:
        """Tell Optuna how the trial ended, unless it is to be launched again. Whether it was told."""
        if record.failure is None:
            value = value_to_tell(self.trials(), self.objective, record)
            self._books.score(trial.number, value, record.estimated)
            return True
        kind = record.failure.kind
        limit = POLICY[kind].max_launches
        same = sum(1 for launch in trial.launches if launch.failure is not None and launch.failure.kind is kind)
        if trial.is_baseline or limit is None or same < limit:
            return False
        self._books.give_up(trial.number, kind)
        return True
