"""What a report is drawn from: a study's records read once, its verdict as of now, and no secrets."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from analysis.frames import baseline_config
from sweeper.deciding.comparable import SOURCES, Aside, comparable, is_imported
from sweeper.deciding.fresh import fresh_launches
from sweeper.deciding.hosts import on_scale_of
from sweeper.deciding.lossless import Gate
from sweeper.deciding.sharing import CLOSING_HOST, scale_host
from sweeper.deciding.verdict import Simplicity, Verdict, decide
from sweeper.errors import ConfigError
from sweeper.kept_search import KeptSearch
from sweeper.metrics import METRICS
from sweeper.objective import SCORE
from sweeper.probing.findings import Findings, findings_of
from sweeper.records import LaunchRecord, TrialRecord, TrialState, duration_s
from sweeper.secrets import MASK, is_secret_name, secrets_of
from sweeper.space import num_combinations
from sweeper.spec import ServerConfig
from sweeper.storing.damage import Damage
from sweeper.storing.kept_run import COMPLETE, kept_runs
from sweeper.storing.storage import StudyStore

ALLOW_LOSSY = "allow_lossy"
"""The fact in which a study keeps whether lossy configurations may win."""

_TEMPERATURE = re.compile(r"(workload|more_workloads\..+)\.temperature")
_GREEDY = ("0", "0.0", "-0.0")

MAX_COMBINATIONS = 5000
"""Of larger spaces is not counted how many configurations are distinct: that asks the engine's rules of each."""

DEFAULT_OBJECTIVE = "output_throughput"
"""For a study that stopped before it wrote down what it depends on; it holds no measurement then."""


@dataclass(frozen=True)
class Reading:
    """A study at one moment. `last_verdict` is the text a sweep ended with; empty while none has ended.

    `recorded` has everything; `trials` is what may be compared, `aside` what may not. `objective` is the metric
    that holds what configurations are ranked by, `objective_text` how that was asked for.
    `settled`: a sweep has ended and nothing was measured since. `all_reduce`: what was timed without a server.
    `ended`: how the last run did (sweeper/storing/kept_run.py); empty where that is not known.
    `space`: how many combinations the space has, and how many of them are legal and distinct, where that is known.
    `damages`: what of the study cannot be read and is left out.
    """

    name: str
    recorded: tuple[TrialRecord, ...]
    trials: tuple[TrialRecord, ...]
    aside: tuple[Aside, ...]
    objective: str
    objective_text: str
    verdict: Verdict
    last_verdict: str
    settled: bool
    fingerprint: Mapping[str, str]
    ended: str = ""
    all_reduce: Findings | None = None
    space: tuple[int, int] | None = None
    damages: tuple[Damage, ...] = ()

    @cached_property
    def drawn(self) -> dict[str, str]:
        """The workloads' temperatures above 0, by the path of the setting: their texts are not compared."""
        settings = {path: value for path, value in self.fingerprint.items() if _TEMPERATURE.fullmatch(path)}
        return {path: value for path, value in settings.items() if value not in _GREEDY}

    @cached_property
    def by_number(self) -> dict[int, TrialRecord]:
        """The trials by number, as far as they may be compared; one that may not at all, as it was recorded."""
        return {trial.number: trial for trial in (*self.recorded, *self.trials)}

    @cached_property
    def launches(self) -> tuple[LaunchRecord, ...]:
        """Every launch, in the order of their start."""
        return tuple(sorted((n for t in self.recorded for n in t.launches), key=lambda launch: launch.started_at))

    @cached_property
    def measured(self) -> tuple[LaunchRecord, ...]:
        """Every launch that was measured, in the order of their start."""
        return tuple(launch for launch in self.launches if launch.ok)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that have measured something, in the order in which they began."""
        return tuple(dict.fromkeys(launch.host for launch in self.measured))

    @property
    def is_over(self) -> bool:
        """Whether a sweep has ended for good: no launch of it is left to be made."""
        return self.settled and self.ended in ("", COMPLETE)

    @cached_property
    def imported(self) -> bool:
        """Whether others measured it: nothing more can be launched."""
        return any(map(is_imported, self.launches))

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
        rows = [launch.provenance for launch in self.measured]
        names = dict.fromkeys(name for row in rows for name in row if name not in SOURCES)
        values = {name: tuple(dict.fromkeys(row[name] for row in rows if name in row)) for name in names}
        return {name: found for name, found in values.items() if len(found) > 1}

    def in_state(self, state: TrialState) -> list[int]:
        """The numbers of the trials in this state."""
        return [trial.number for trial in self.recorded if trial.state is state]

    @property
    def leaders(self) -> tuple[TrialRecord, ...]:
        """The baseline and the configurations that the verdict speaks of, best first."""
        numbers = (0, *(row.trial_number for row in self.verdict.comparisons))
        return tuple(self.by_number[number] for number in numbers if number in self.by_number)

    @property
    def first_workload(self) -> str:
        """The name of the workload whose numbers are the launches' own; `first` when none was written down."""
        names = (launch.provenance.get("workload", "") for launch in reversed(self.measured))
        return next((name for name in names if name), "first")

    def compared(self, trial: TrialRecord) -> tuple[LaunchRecord, ...]:
        """The launches of a trial that the verdict is drawn from."""
        if not self.verdict.confirmed:
            return trial.measured
        return tuple(fresh_launches(self.trials)[trial.number])


@dataclass(frozen=True)
class Stored:
    """What a study holds: its records, and what it has written down about the whole of itself."""

    name: str
    trials: Sequence[TrialRecord]
    fingerprint: Mapping[str, str]
    last_verdict: str = ""
    ended: str = ""
    allow_lossy: bool = False
    closing_host: str = ""
    all_reduce: Findings | None = None
    space: tuple[int, int] | None = None
    damages: tuple[Damage, ...] = ()


def read(store: StudyStore, simplicity: Simplicity) -> Reading:
    """Read the study, whatever its state; what cannot be read is left out, and told in `damages`."""
    stored = Stored(
        name=store.name,
        trials=store.readable(),
        fingerprint=store.texts("fingerprint"),
        last_verdict=store.texts("verdict").get("text", ""),
        ended=next((run.ended for run in kept_runs(store)), ""),
        allow_lossy=store.fact(ALLOW_LOSSY) is True,
        closing_host=str(store.fact(CLOSING_HOST) or ""),
        all_reduce=findings_of(store),
        space=_space_of(store),
        damages=store.damages(),
    )
    return reading_of(stored, simplicity)


def reading_of(stored: Stored, simplicity: Simplicity) -> Reading:
    """The same from what has been read already. Pure."""
    asked = stored.fingerprint.get("objective", DEFAULT_OBJECTIVE)
    objective = asked if asked in METRICS else SCORE
    recorded = tuple(stored.trials)
    running = any(trial.state is TrialState.RUNNING for trial in recorded)
    gate = Gate(allow_lossy=stored.allow_lossy)
    last = stored.last_verdict
    host = scale_host(recorded, objective, stored.closing_host)
    kept = comparable(recorded)[0]
    said = {decide(trials, objective, simplicity, gate, host).text for trials in (recorded, kept)}
    secrets = secrets_of(recorded)
    masked = tuple(map(secrets.masked, recorded))
    trials, aside = comparable(masked)
    return Reading(
        name=stored.name,
        recorded=masked,
        trials=on_scale_of(trials, objective, host),
        aside=aside,
        objective=objective,
        objective_text=asked,
        verdict=decide(trials, objective, simplicity, gate, host),
        last_verdict=secrets.hide(last),
        settled=last in said and bool(recorded) and not running,
        ended=stored.ended,
        fingerprint={p: MASK if is_secret_name(p) else secrets.hide(v) for p, v in stored.fingerprint.items()},
        all_reduce=stored.all_reduce,
        space=stored.space,
        damages=stored.damages,
    )


def _space_of(store: StudyStore) -> tuple[int, int] | None:
    """How many combinations were searched, and how many are distinct; None where there are too many."""
    try:
        kept = KeptSearch.of(store)
    except ConfigError:
        return None
    combinations = num_combinations(kept.space)
    if combinations is None or combinations > MAX_COMBINATIONS:
        return None
    found = kept.candidates().enumerated
    return None if found is None else (combinations, len(found))
