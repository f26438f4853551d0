"""Drives the real command in a folder of its own, and looks at what it left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sweeper.errors import ConfigError
from sweeper.records import TrialRecord, TrialState
from sweeper.storing.storage import StudyStore

STUDY = "llamacpp_smoke"
TIMEOUT_S = 240


@dataclass(frozen=True)
class Outcome:
    """How the command ended."""

    code: int
    output: str


@dataclass(frozen=True)
class SweepFolder:
    """A working directory and a host state of its own: nothing of the user's is touched."""

    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_STATE_HOME": str(self.directory / "state"), "COLUMNS": "120"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The command in the background, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "sweeper", *words],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def sweep(self, *overrides: str) -> subprocess.Popen[str]:
        """`specsweep run` on the small preset, in the background."""
        return self.start("run", f"preset={STUDY}", *overrides)

    def run(self, *overrides: str) -> Outcome:
        """`specsweep run` on the small preset, to its end."""
        return finish(self.sweep(*overrides))

    def trials(self) -> tuple[TrialRecord, ...]:
        """The study's trials; empty before there is a study."""
        if not (self.directory / "sweeps" / "optuna.db").exists():
            return ()
        try:
            return self.store().trials()
        except ConfigError:  # killed after the tables were made, before the study
            return ()

    def store(self) -> StudyStore:
        sweeps = self.directory / "sweeps"
        return StudyStore.open(f"sqlite:///{sweeps}/optuna.db", STUDY, str(sweeps), create=False)

    def finished(self) -> dict[int, tuple[str, float | None]]:
        """Number to key and value of every trial that has been told."""
        return {
            t.number: (t.key, t.mean("output_throughput"))
            for t in self.trials()
            if t.state is not TrialState.RUNNING
        }

    def log(self) -> str:
        """The sweep's own log so far."""
        file = self.directory / "sweeps" / f"{STUDY}.log"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def servers(self) -> list[str]:
        """Command lines of the processes that any launch from this folder has left alive."""
        mark = f"{self.directory}".encode()
        found = []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit() or int(process.name) == os.getpid():
                continue
            try:
                command, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue
            if b"llamacpp_server\0--model" in command and mark in environ:
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
        return found

    def runs(self) -> list[str]:
        """The trial numbers of MLflow's runs, as their tags have them."""
        from mlflow import MlflowClient

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MLflow's own use of SQLAlchemy
            client = MlflowClient(f"sqlite:///{self.directory}/sweeps/mlflow.db")
            experiment = client.get_experiment_by_name(STUDY)
            assert experiment is not None
            runs = client.search_runs([experiment.experiment_id])
        return sorted(run.data.tags["specsweep.trial"] for run in runs)


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for the command's end; a command that hangs is killed and shown."""
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise AssertionError(f"still running after {TIMEOUT_S} s:\n{output}") from None
    return Outcome(process.returncode, output)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str], what: str) -> None:
    """Poll `condition` while the process lives."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            output = finish(process).output if process.poll() is not None else "(still running)"
            raise AssertionError(f"{what} never came:\n{output}")
        time.sleep(0.05)
