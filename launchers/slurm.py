"""Runs a program on nodes of a Slurm cluster, one job per node, through submitit. Nothing else imports that.

submitit writes the batch scripts, hands them to `sbatch`, and keeps what the program returns in a folder that all
nodes see. How a job stands is read from `squeue`, which also answers where nobody keeps accounts (`sacct`).
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import shlex
import signal
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchers.base import Shell
from launchers.errors import HostLost, LauncherError

if TYPE_CHECKING:
    from submitit import Job

STOP_S = 120
"""So long before the end of its time Slurm tells a job: what its program has to stop itself."""

NODE = "SPECSWEEP_SLURM_NODE"
"""The environment variable by which a program knows that it runs in a job, and on which node."""

OURS = frozenset({
    "array", "error", "input", "job-name", "nodes", "ntasks", "ntasks-per-node", "open-mode", "output", "parsable",
    "signal", "wait", "wrap",
})  # fmt: skip
"""Options of sbatch that are chosen here."""

_ASK_S = 60.0
_LINE_BYTES = 4000
_READ_BYTES = 1_000_000
_OVER = frozenset({
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "REVOKED", "TIMEOUT",
})  # fmt: skip
_UNKNOWN_ID = "Invalid job id"


@dataclass(frozen=True)
class Entry:
    """What a job runs, in its own process: `main(words)` of a module; its exit code is the job's result.

    Before the end of its time, when it is cancelled and when it is preempted, Slurm sends it SIGTERM. submitit
    ignores that; here it ends the program, until that takes it over.
    """

    module: str
    words: tuple[str, ...]

    def __call__(self) -> int:
        """Called on the node."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ[NODE] = os.environ.get("SLURMD_NODENAME") or platform.node()
        return int(importlib.import_module(self.module).main(self.words))


@dataclass(frozen=True)
class Look:
    """A job as Slurm tells of it. `node`: empty while it waits; `why`: what it waits for, or how it ended."""

    state: str
    node: str = ""
    why: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good: one that is to run again waits."""
        return self.state in _OVER

    @property
    def waits(self) -> bool:
        """Whether it has no node."""
        return self.state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")


class SlurmJobs:
    """Jobs of one submission. `folder`: seen by all nodes; `shell`: of the machine that has Slurm's commands."""

    def __init__(self, folder: Path, shell: Shell) -> None:
        self._folder = folder
        self._shell = shell
        self._jobs: dict[str, Job[int]] = {}
        self._read: dict[str, int] = {}

    def submit(self, entry: Entry, count: int, options: Mapping[str, str]) -> tuple[str, ...]:
        """Submit so many jobs of one node each, which no other job shares; their ids.

        `options`: of sbatch, by their long names. Raises ImportError without submitit, LauncherError when this
        machine has no Slurm, or Slurm refuses.
        """
        import submitit

        try:
            executor = submitit.SlurmExecutor(self._folder)
            executor.update_parameters(**_parameters(options))
            with executor.batch():
                made = [executor.submit(entry) for _ in range(count)]
        except (RuntimeError, OSError) as error:  # FailedSubmissionError is a RuntimeError
            raise LauncherError(f"Slurm did not take the jobs: {_told(error)}") from error
        self._jobs = {job.job_id: job for job in made}
        return tuple(self._jobs)

    def look(self) -> dict[str, Look]:
        """Id to state, of every job that Slurm still knows. Raises HostLost when Slurm does not answer."""
        argv = ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T|%N|%r", "--jobs", self._ids()]
        done = self._shell.run(shlex.join(argv), _ASK_S)
        if done.exit_code != 0 and _UNKNOWN_ID not in done.stderr.decode(errors="replace"):
            raise HostLost(f"squeue: {done.stderr.decode(errors='replace')[:300].strip()}")
        return read_looks(done.stdout.decode(errors="replace"), self._jobs)

    def new_lines(self, job: str) -> list[str]:
        """What the job's program has printed since the last call: whole lines, about 1 MB of them at most."""
        path = self._jobs[job].paths.stdout
        try:
            with path.open("rb") as file:
                file.seek(self._read.get(job, 0))
                content = file.read(_READ_BYTES)
        except OSError:  # not there yet
            return []
        whole = content if len(content) == _READ_BYTES else content[: content.rfind(b"\n") + 1]
        self._read[job] = self._read.get(job, 0) + len(whole)
        return [line[:_LINE_BYTES].decode(errors="replace") for line in whole.splitlines()]

    def result(self, job: str) -> int | None:
        """What the program of a job that is over returned; None when it was ended before it could."""
        import submitit

        made = self._jobs[job]
        if not made.paths.result_pickle.exists():
            return None
        try:
            return int(made.result())
        except submitit.core.utils.UncompletedJobError:
            return None

    def cancel(self, *, only_waiting: bool = False) -> None:
        """SIGTERM to the programs of all jobs, and their end some time after (Slurm's KillWait).

        `only_waiting`: jobs that have no node yet. Raises HostLost when Slurm does not answer.
        """
        if not self._jobs:
            return
        words = ["scancel", *(["--state=PENDING"] if only_waiting else []), *self._jobs]
        self._shell.run(shlex.join(words), _ASK_S)

    def _ids(self) -> str:
        return ",".join(self._jobs)


def read_looks(text: str, jobs: Container[str]) -> dict[str, Look]:
    """Id to state, of those `jobs` that squeue's answer tells of."""
    lines = (line.split("|") for line in text.splitlines())
    told = {words[0]: [word[:200] for word in words[1:]] for words in lines if len(words) == 4}
    return {job: Look(*words) for job, words in told.items() if job in jobs}


def node() -> str:
    """The node on which this process runs as a job's program; empty elsewhere."""
    return os.environ.get(NODE, "")


def option_mistake(name: str, value: str) -> str:
    """Why this can be no option of sbatch; empty when it can."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,40}", name):
        return "is not the long name of an option of sbatch"
    if name in OURS:
        return "is chosen by specsweep"
    return "" if value.isprintable() else "should be one line of text"


def _parameters(options: Mapping[str, str]) -> dict[str, Any]:
    """In submitit's words, without its defaults of five minutes and of an accounting key."""
    chosen = {"exclusive": "", **options, "signal": f"TERM@{STOP_S}"}
    return {
        "job_name": "specsweep",
        "time": None,
        "wckey": None,
        "nodes": 1,
        "ntasks_per_node": 1,
        "stderr_to_stdout": True,
        "srun_args": ["--cpu-bind=none"],
        "additional_parameters": {name: value or True for name, value in chosen.items()},
    }


def _told(error: Exception) -> str:
    """What sbatch said, in one line."""
    return " ".join(str(error).split())[:500]
