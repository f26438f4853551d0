"""The study: what to measure next, what has been measured, and what that means.

Optuna is driven with ask and tell. A trial that was begun and never told stays RUNNING and is simply asked for
again, under its own number; so Ctrl-C, a crash and a retry all take the same way. Where several workers share the
study, a trial under another worker's lease is left alone (storing/ownership.py), and whoever asks, saves or tells
holds the lock on the study (storing/database.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from sweeper.asking import Asking
from sweeper.deciding.comparable import comparable
from sweeper.deciding.hosts import on_scale_of, value_to_tell
from sweeper.deciding.plan import Progress, Step
from sweeper.deciding.sharing import CLOSING_HOST, Crew, Ranking, Wait, shared_step
from sweeper.deciding.verdict import Simplicity, Verdict, decide
from sweeper.errors import FailureKind
from sweeper.fingerprint import Fingerprint
from sweeper.outlook import Outlook
from sweeper.policy import POLICY
from sweeper.records import LaunchRecord, Proposal, Purpose, TrialRecord, TrialState
from sweeper.samplers.choice import SamplerSettings
from sweeper.searching.candidates import Candidates
from sweeper.spec import BudgetSpec, ServerConfig
from sweeper.storing.leases import LeaseLost
from sweeper.storing.ownership import Ownership, Sole, still_there
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_facts import identity_of, kept_verdict, require_same_settings


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
        self._asking = Asking(store, candidates, baseline, sampler)
        self._outlook = Outlook(store, self._asking, sampler, ranking)
        self._books = self._asking.books

    def require_same(self, current: Fingerprint) -> None:
        """Keep the fingerprint in a new study; raises StudyMismatch when an old one has another."""
        require_same_settings(self.store, current)
        self.store.set_fact("allow_lossy", self._gate.allow_lossy)

    def search_is_over(self, budget: BudgetSpec) -> str:
        """Why the search ended before its budget was spent, in words; empty while it goes on."""
        return self._outlook.search_is_over(budget)

    def reconcile(self) -> list[str]:
        """Finish what a dead process left half done; what was found, one line each."""
        return self.store.database.exclusively(self._reconcile)

    def _reconcile(self) -> list[str]:
        crew = self.ownership.crew(self._outlook.closing_host)
        return [
            f"trial {number} had been measured: finished from its record"
            if is_finished
            else f"trial {number} was interrupted: it is measured again"
            for number, is_finished in self._finish_orphans(self.trials(), crew).items()
        ]

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
            trials = self.trials()
            trial = still_there(trials, proposal.trial_number)
            if proposal.purpose.settles and trial.state is TrialState.RUNNING:
                self.ownership.require(proposal.trial_number, proposal.launch_number)
                self._settle(trial, record, trials)
            self.ownership.end(proposal.trial_number, proposal.launch_number)

        self.store.database.exclusively(settle)

    def release(self, proposal: Proposal) -> None:
        """A launch was abandoned on request: the trial is put back, and nothing is held against it."""

        def put_back() -> None:
            with suppress(LeaseLost):
                self.ownership.require(proposal.trial_number, proposal.launch_number)
                trial = still_there(self.trials(), proposal.trial_number)
                if proposal.purpose.settles and trial.state is TrialState.RUNNING:
                    self._books.put_back(trial.number)
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
        return on_scale_of(trials, self.objective, self._outlook.scale_host(trials))

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
        return self._outlook.progress(budget, self.ownership.host)

    def verdict(self, simplicity: Simplicity, cut_short: str = "") -> Verdict:
        """The verdict on what has been measured so far; kept in the study, and drawn anew only when that grows.
        `cut_short`, a sentence about what was left out as time or energy ran out, becomes part of it.
        """
        trials = self.trials()
        count = sum(len(trial.launches) for trial in trials)
        host = self._outlook.scale_host(trials)
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
        crew = self.ownership.crew(self._outlook.closing_host)
        if crew is not None and any(self._finish_orphans(trials, crew).values()):
            trials = self.trials()
        self._asking.know(trials)
        if crew is None:
            return self._outlook.next_step(trials, budget)
        step = shared_step(trials, crew, budget, self._ranking, self._outlook.anything_left(trials, budget))
        if isinstance(step, Step) and step.purpose is Purpose.CONFIRM and crew.host != crew.closing_host:
            self.store.set_fact(CLOSING_HOST, crew.host)
        return step

    def _begin(self, step: Step, number: int) -> Proposal | None:
        """The proposal for a launch of trial `number`; None when that trial has just been settled without one."""
        trials, base = self.trials(), self._candidates.base  # the study holds no secrets
        trial = still_there(trials, number)
        requested, canonical = trial.requested.with_secrets_of(base), trial.canonical.with_secrets_of(base)
        if step.purpose.settles and trial.state is TrialState.RUNNING:
            if not trial.key:
                requested = self._asking.configuration(number)
                canonical = self._asking.canonical(requested)
            if self._gave_up(trial) or self._asking.left_out_as_duplicate(number, canonical.key(), trials):
                return None
            self._books.begin(number, requested, canonical)
        searches = step.purpose is Purpose.SEARCH
        return Proposal(
            trial_number=number,
            launch_number=self.ownership.begin(trial),
            purpose=step.purpose,
            requested=requested,
            canonical=canonical,
            reference=self._outlook.reference(trials, self.ownership.host) if searches else None,
            forecast=trial.forecast if searches else None,
        )

    def _gave_up(self, trial: TrialRecord) -> bool:
        """Whether specsweep died so often during this trial that it is put aside. The baseline never is."""
        deaths = self._books.begun(trial.number) - len(trial.launches)
        if trial.is_baseline or deaths < (POLICY[FailureKind.INTERRUPTED].max_launches or 0):
            return False
        self._books.give_up(trial.number, FailureKind.INTERRUPTED)
        return True

    def _finish_orphans(self, trials: Sequence[TrialRecord], crew: Crew | None) -> dict[int, bool]:
        """Tell what the last launch of each orphan settled; by trial number whether it did settle the trial."""
        return {
            trial.number: bool(trial.launches) and self._settle(trial, trial.launches[-1], trials)
            for trial in _orphans(trials, crew)
        }

    def _settle(self, trial: TrialRecord, record: LaunchRecord, trials: Sequence[TrialRecord]) -> bool:
        """Tell Optuna how the trial, one of all `trials`, ended, unless it is to be launched again.

        Whether it was told.
        """
        if record.failure is None:
            value = value_to_tell(trials, self.objective, record)
            self._books.score(trial.number, value, record.estimated)
            return True
        kind = record.failure.kind
        limit = POLICY[kind].max_launches
        same = sum(1 for launch in trial.launches if launch.failure is not None and launch.failure.kind is kind)
        if trial.is_baseline or limit is None or same < limit:
            return False
        self._books.give_up(trial.number, kind)
        return True


def _orphans(trials: Sequence[TrialRecord], crew: Crew | None) -> list[TrialRecord]:
    """Trials that were begun, not told, and are under no living worker's lease."""
    running = [trial for trial in trials if trial.state is TrialState.RUNNING]
    return [trial for trial in running if crew is None or trial.number not in crew.busy]
