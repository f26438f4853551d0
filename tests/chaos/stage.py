"""What a row of the fault table plays on: sweeps, and the checks that every fault must pass."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.records import TrialState
from tests.chaos.audit import Ledger, audit
from tests.chaos.sweeps import Sweep, over_ssh
from tests.chaos.targets import mlflow_server, shared_sweep
from tests.chaos.zygote import Command, Zygote
from tests.fleet.postgres import Cluster, cluster
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd

SEARCH = ("budget.trials=3", "budget.confirm_launches=0", "budget.baseline_every=100")
PATIENCE_S = 120.0


class NotHere(Exception):
    """This machine cannot make the fault; the row says why."""


@dataclass
class House:
    """What is started once for all rows."""

    folder: Path
    zygote: Zygote
    _stack: ExitStack
    _postgres: Cluster | None = None
    _mlflow: str = ""

    def postgres(self) -> Cluster:
        """A real PostgreSQL; a row that stops it starts it again."""
        if self._postgres is None:
            self._postgres = self._stack.enter_context(cluster())
        return self._postgres

    def mlflow(self) -> str:
        """The address of a real MLflow server."""
        if not self._mlflow:
            self._mlflow = self._stack.enter_context(mlflow_server(self.folder / "mlflow"))
        return self._mlflow


@dataclass
class Stage:
    """One row's place. `seen`: what happened, in a few words; `wrong`: what was not as expected."""

    folder: Path
    house: House
    stack: ExitStack
    seen: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    trials: int = 3
    tracked: bool = True
    after: tuple[str, ...] = ()
    next_says: str = ""
    is_ended: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    _sweep: Sweep | None = None

    @property
    def sweep(self) -> Sweep:
        """The row's sweep; by default one on this machine with its stores in files."""
        if self._sweep is None:
            self._sweep = Sweep(self.folder, self.house.zygote, words=SEARCH)
        return self._sweep

    def local(self, *words: str, env: Mapping[str, str] | None = None, tracking: str = "") -> Sweep:
        """The same with more words, environment, or another MLflow."""
        self._sweep = Sweep(
            self.folder, self.house.zygote, words=(*SEARCH, *words), env=env or {}, tracking=tracking
        )
        return self._sweep

    def use(self, sweep: Sweep) -> Sweep:
        """Another kind of sweep."""
        self._sweep = sweep
        return sweep

    def ssh(self, *words: str, env: Mapping[str, str] | None = None) -> tuple[Sshd, Proxy]:
        """From now on the sweep's host is behind a real sshd, and a proxy."""
        sshd = self.stack.enter_context(Sshd(self.folder / "sshd", env=env))
        proxy = self.stack.enter_context(Proxy(sshd.port))
        self.local(*over_ssh(sshd, self.folder, *words, port=proxy.port))
        return sshd, proxy

    def shared(self, *words: str, url: str = "") -> Sweep:
        """From now on the sweep's study is in PostgreSQL, its runs on an MLflow server."""
        sweep = shared_sweep(
            self.folder, self.house.zygote, self.house.postgres(), self.house.mlflow(), *SEARCH, *words
        )
        if url:
            sweep.storage = url
        return self.use(sweep)

    def until(self, condition: Callable[[], bool], what: str, command: Command | None = None) -> None:
        """Wait for something; raises AssertionError when the command ends, or time is up, without it."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            ended = command is not None and not command.is_running and not condition()
            if ended or time.monotonic() > end:
                raise AssertionError(f"{what} never came: {command.output[-1500:] if command else ''}")
            time.sleep(0.03)

    def in_phase(self, command: Command, phase: str, trial: int = 1) -> None:
        """Wait until trial `trial` has begun and is in a phase whose name begins so."""
        mark = f"trial {trial}: "
        self.until(
            lambda: mark in command.output and self.sweep.phase().startswith(phase), f"{mark}{phase}", command
        )

    def check(self, condition: bool, what: str) -> None:
        """One expectation beyond those of every row."""
        if not condition:
            self.wrong.append(f"not so: {what}")

    def ended(self, command: Command, code: int, says: str = "") -> str:
        """The command ends by itself, with this exit code, and its output matches `says`. Returns the output."""
        got = command.wait()
        self.ledger.read(self.sweep)
        self.seen.append(f"exit code {got}" if got >= 0 else f"ended by {signal.Signals(-got).name}")
        if got != code and not (code == 143 and got == -15):
            self.wrong.append(f"exit code {got}, not {code}: {command.output[-800:]}")
        self.says(command.output, says)
        return command.output

    def says(self, text: str, pattern: str) -> None:
        """The text matches; what did is part of what was seen."""
        if not pattern:
            return
        if found := re.search(pattern, text):
            self.seen.append(f'says "{" ".join(found[0].split())[:110]}"')
        else:
            self.wrong.append(f"does not say {pattern!r}: {text[-800:]}")

    def finish(self) -> None:
        """The next start goes on to the end with exit code 0; then everything is looked at."""
        if not self.is_ended:
            command = self.sweep.start(*self.after)
            if (code := command.wait()) != 0:
                self.wrong.append(f"the next start: exit code {code}: {command.output[-1500:]}")
            self.says(command.output, self.next_says)
        self.look()

    def look(self) -> None:
        """Nothing lost, doubled, left behind, locked; MLflow is the study."""
        found = audit(self.sweep, self.ledger, tracked=self.tracked)
        self.wrong += found.wrong
        states = Counter(trial.state for trial in self.sweep.trials())
        if self.trials and states[TrialState.RUNNING] + sum(states.values()) != self.trials:
            self.wrong.append(f"{dict(states)}, not {self.trials} trials")
        lost, double, left = len(found.lost), len(found.duplicated), len(found.left_behind)
        self.seen.append(f"{found.trials} trials; lost {lost}, doubled {double}, left behind {left}")

    def mount(self, *options: str, size: str = "64m") -> Path:
        """A small file system of its own, gone with the row. Raises NotHere."""
        place = self.folder / "small"
        place.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "none", str(place)]
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            raise NotHere("this machine lets nobody mount a small file system")
        self.stack.callback(subprocess.run, ["umount", "-l", str(place)], check=False)
        return place


def process_of(folder: Path, words: bytes) -> int:
    """The pid of the one process with `words` and the folder on its command line; 0 when there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if words in command and str(folder).encode() in command:
                return int(process.name)
    return 0
