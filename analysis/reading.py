"""What a report is drawn from: a study's records read once, its verdict as of now, and no secrets."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from analysis.frames import baseline_config
from sweeper.metrics import METRICS
from sweeper.records import LaunchRecord, TrialRecord, TrialState, duration_s
from sweeper.secrets import MASK, is_secret_name, secrets_of
from sweeper.spec import ServerConfig
from sweeper.storage import StudyStore
from sweeper.verdict import Simplicity, Verdict, decide, fresh_launches

DEFAULT_OBJECTIVE = "output_throughput"
"""For a study that stopped before it wrote down what it depends on; it holds no measurement then."""


@dataclass(frozen=True)
class Reading:
    """A study at one moment. `last_verdict` is the text a sweep ended with; empty while none has ended.

    `settled`: a sweep has ended and nothing was measured since.
    """

    name: str
    trials: tuple[TrialRecord, ...]
    objective: str
    verdict: Verdict
    last_verdict: str
    settled: bool
    fingerprint: Mapping[str, str]

    @cached_property
    def by_number(self) -> dict[int, TrialRecord]:
        """The trials by number."""
        return {trial.number: trial for trial in self.trials}

    @cached_property
    def launches(self) -> tuple[LaunchRecord, ...]:
        """Every launch, in the order of their start."""
        return tuple(sorted((n for t in self.trials for n in t.launches), key=lambda launch: launch.started_at))

    @cached_property
    def base(self) -> ServerConfig:
        """The baseline's canonical configuration."""
        return baseline_config(self.trials)

    @property
    def advised_launch(self) -> LaunchRecord | None:
        """The newest measured launch of the trial to run in production; None without a verdict."""
        if self.verdict.advised is None:
            return None
        return next((n for n in reversed(self.by_number[self.verdict.advised].measured) if n.argv), None)

    @property
    def rival(self) -> TrialRecord | None:
        """The trial to look at beside the baseline: the advised one, else the fastest other one."""
        if self.verdict.advised:
            return self.by_number[self.verdict.advised]
        return self.by_number[self.verdict.comparisons[0].trial_number] if self.verdict.comparisons else None

    @property
    def span(self) -> tuple[datetime.datetime, datetime.datetime] | None:
        """From the start of the first launch to the end of the last one."""
        if not self.launches:
            return None
        return self.launches[0].started_at, max(launch.ended_at for launch in self.launches)

    @property
    def wall_clock_s(self) -> float | None:
        """The length of `span`."""
        return duration_s(*self.span) if self.span else None

    @cached_property
    def differing(self) -> dict[str, tuple[str, ...]]:
        """Facts of provenance that are not the same for all measured launches, with their values."""
        rows = [launch.provenance for launch in self.launches if launch.ok]
        names = dict.fromkeys(name for row in rows for name in row)
        values = {name: tuple(dict.fromkeys(row.get(name, "") for row in rows)) for name in names}
        return {name: found for name, found in values.items() if len(found) > 1}

    def in_state(self, state: TrialState) -> list[int]:
        """The numbers of the trials in this state."""
        return [trial.number for trial in self.trials if trial.state is state]

    def compared(self, trial: TrialRecord) -> tuple[LaunchRecord, ...]:
        """The launches of a trial that the verdict is drawn from."""
        if not self.verdict.confirmed:
            return trial.measured
        rivals = [self.by_number[row.trial_number] for row in self.verdict.comparisons]
        return tuple(fresh_launches(self.by_number[0], rivals)[trial.number])


def read(store: StudyStore, simplicity: Simplicity) -> Reading:
    """Read the study, whatever its state. Raises SpecsweepError when a stored record cannot be read."""
    fingerprint = _texts(store.fact("fingerprint"))
    objective = fingerprint.get("objective", DEFAULT_OBJECTIVE)
    if objective not in METRICS:
        objective = DEFAULT_OBJECTIVE
    trials = store.trials()
    verdict = decide(trials, objective, simplicity)
    last = _texts(store.fact("verdict")).get("text", "")
    running = any(trial.state is TrialState.RUNNING for trial in trials)
    settled = last == verdict.text and bool(trials) and not running
    secrets = secrets_of(trials)
    trials = tuple(map(secrets.masked, trials))
    verdict = decide(trials, objective, simplicity)
    named = {path: MASK if is_secret_name(path) else secrets.hide(value) for path, value in fingerprint.items()}
    return Reading(store.name, trials, objective, verdict, secrets.hide(last), settled, named)


def _texts(fact: object) -> dict[str, str]:
    """The texts in a stored fact, which may be absent or not what it should be."""
    return {str(k): v for k, v in fact.items() if isinstance(v, str)} if isinstance(fact, Mapping) else {}
