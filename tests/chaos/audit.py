"""What must hold after every fault: nothing lost, doubled or left behind, no lock held, MLflow is the study."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sweeper.metrics import METRICS
from sweeper.records import TrialRecord, TrialState
from sweeper.storing.study_facts import identity_of
from sweeper.tracking.view import TAG_KEY, TAG_STATE, TAG_STUDY_ID, TAG_TRIAL
from tests.chaos.sweeps import STUDY, Sweep
from tests.tracking import seen

if TYPE_CHECKING:
    from mlflow.entities import Run

SCORE = "output_throughput"
Launches = dict[tuple[int, int], tuple[str, float | None]]
Trials = dict[int, tuple[str, str]]


class Readable(Protocol):
    """Whatever has trials."""

    def trials(self) -> tuple[TrialRecord, ...]:
        """All of them."""


@dataclass
class Ledger:
    """What has once been finished, of one sweep: read after each fault, it must still be there in the end."""

    launches: Launches = field(default_factory=dict)
    trials: Trials = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)

    def read(self, sweep: Readable) -> None:
        """Compare what is in the study now with what was there before."""
        trials = sweep.trials()
        launches = {(t.number, n.launch_number): (t.key, n.metrics.get(SCORE)) for t in trials for n in t.launches}
        ended = {t.number: (t.key, t.state.value) for t in trials if t.state is not TrialState.RUNNING}
        self.lost += [f"launch {at}: {kept}" for at, kept in self.launches.items() if launches.get(at) != kept]
        self.lost += [f"trial {at}: {kept}" for at, kept in self.trials.items() if ended.get(at) != kept]
        self.launches, self.trials = launches, ended


@dataclass(frozen=True)
class Audit:
    """What was found wrong, a line each; every list empty when all is well."""

    lost: tuple[str, ...]
    duplicated: tuple[str, ...]
    left_behind: tuple[str, ...]
    locks: tuple[str, ...]
    mlflow: tuple[str, ...]
    trials: int
    launches: int

    @property
    def wrong(self) -> list[str]:
        """Everything, with what it is."""
        found = {"lost": self.lost, "duplicated": self.duplicated, "left behind": self.left_behind,
                 "lock": self.locks, "MLflow": self.mlflow}  # fmt: skip
        return [f"{name}: {line}" for name, lines in found.items() for line in lines]


def audit(sweep: Sweep, ledger: Ledger, *, tracked: bool = True) -> Audit:
    """Look at everything, once the sweep has ended."""
    ledger.read(sweep)
    trials = sweep.trials()
    return Audit(
        lost=tuple(ledger.lost),
        duplicated=tuple(doubled(trials)),
        left_behind=(*processes_of(sweep.folder), *sweep.left_behind(), *unfinished(trials)),
        locks=tuple(held_locks(sweep)),
        mlflow=tuple(differences(sweep, trials)) if tracked else (),
        trials=len(trials),
        launches=sum(len(trial.launches) for trial in trials),
    )


def doubled(trials: tuple[TrialRecord, ...]) -> list[str]:
    """Configurations that are two trials, launch numbers that are there twice, trials that were settled twice."""
    keys = Counter(trial.key for trial in trials if trial.key)
    found = [f"{count} trials have the key {key}" for key, count in keys.items() if count > 1]
    for trial in trials:
        numbers = Counter(launch.launch_number for launch in trial.launches)
        found += [f"trial {trial.number}: launch {n} twice" for n, count in numbers.items() if count > 1]
        settled = Counter(n.host for n in trial.launches if n.purpose.settles and n.ok)
        if not trial.is_baseline and sum(settled.values()) > 1:
            found.append(f"trial {trial.number}: measured twice in the search")
    return found


def unfinished(trials: tuple[TrialRecord, ...]) -> list[str]:
    """Trials that nobody ended."""
    return [f"trial {trial.number} is unfinished" for trial in trials if trial.state is TrialState.RUNNING]


def processes_of(folder: Path) -> list[str]:
    """Living processes whose command line or environment names the folder: servers, supervisors, commands."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            command, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            state = (process / "stat").read_text().rpartition(") ")[2][:1]
        except OSError:
            continue
        ours = f"{folder}/state".encode() in command + environ or f"llama.py\0{folder}\0".encode() in command
        if ours and state not in "ZX":
            found.append(
                f"process {process.name}: {command[:120].replace(bytes(1), b' ').decode(errors='replace')}"
            )
    return found


def state_dirs(sweep: Sweep) -> list[Path]:
    return sorted(path for path in sweep.folder.glob("state*") if path.is_dir())


def held_locks(sweep: Sweep) -> list[str]:
    """Lock files that somebody still holds."""
    paths = list(sweep.folder.glob("*.lock")) + [p for d in state_dirs(sweep) for p in d.rglob("*lock*")]
    return [f"{path} is held" for path in paths if path.is_file() and is_held(path)]


def is_held(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def runs_of(sweep: Sweep) -> list[Run]:
    """MLflow's runs of the study's trials."""
    return [run for run in all_runs_of(sweep) if TAG_TRIAL in run.data.tags]


def all_runs_of(sweep: Sweep) -> list[Run]:
    """Every run of this very study; another one may have the experiment's plain name."""
    mlflow, identity = seen.client(sweep.mlflow_uri()), identity_of(sweep.store())
    names = [e.name for e in mlflow.search_experiments() if e.name.startswith(STUDY)]
    runs = [run for name in names for run in seen.all_runs(sweep.mlflow_uri(), name)]
    return [run for run in runs if run.data.tags.get(TAG_STUDY_ID) == identity]


def differences(sweep: Sweep, trials: tuple[TrialRecord, ...]) -> list[str]:
    """Where MLflow's runs are not the study's trials: one run each, its mean, and one point for every repeat."""
    runs = runs_of(sweep)
    numbers = Counter(int(run.data.tags[TAG_TRIAL]) for run in runs)
    ended = {trial.number: trial for trial in trials if trial.state is not TrialState.RUNNING and trial.launches}
    found = [f"{count} runs for trial {number}" for number, count in numbers.items() if count > 1]
    found += [f"no run for trial {number}" for number in ended if number not in numbers]
    client = seen.client(sweep.mlflow_uri())
    for run in runs:
        trial = ended.get(int(run.data.tags[TAG_TRIAL]))
        if trial is None:
            continue
        if (run.data.tags[TAG_KEY], run.data.tags[TAG_STATE]) != (trial.key, trial.state.value):
            found.append(f"trial {trial.number}: {run.data.tags[TAG_STATE]} in MLflow, {trial.state.value}")
        mean = trial.mean(SCORE) if trial.state is TrialState.COMPLETE else None
        shown = run.data.metrics.get(SCORE)
        if shown != (None if mean is None else round(mean, METRICS[SCORE].digits + 1)):
            found.append(f"trial {trial.number}: {shown} in MLflow, {mean} in the study")
        if mean is not None:
            repeats = [round(v, 2) for launch in trial.measured for v in launch.repeat_throughputs]
            points = sorted(seen.history(client, run, "repeat_output_throughput"))
            if [value for _, _, value in points] != repeats:
                found.append(f"trial {trial.number}: repeats {points} in MLflow, {repeats} in the study")
    return found
