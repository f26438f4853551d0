"""Starts and kills workers, and counts what they leave in the database.

`python -m tests.fleet.crew --kills 6` prints the figures.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.records import TrialRecord, TrialState
from tests.fleet.postgres import cluster
from tests.fleet.worker import open_study

PATIENCE_S = 300.0


@dataclass
class Running:
    """A worker's process, and the lines that it has printed so far."""

    host: str
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    _came: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, pattern: str) -> str:
        """The next line that begins so."""
        end = time.monotonic() + PATIENCE_S
        while (line := self._came.get(timeout=max(0.1, end - time.monotonic()))) is not None:
            if re.match(pattern, line):
                return line
        raise AssertionError(f"{self.host} ended without {pattern!r}:\n{self.output}")

    def end(self) -> int:
        """Its exit code, once it has ended by itself."""
        code = self.process.wait(PATIENCE_S)
        while self._came.get(timeout=PATIENCE_S) is not None:
            pass
        return code

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                self.lines.append(line.rstrip("\n"))
                self._came.put(self.lines[-1])
        self._came.put(None)


@dataclass(frozen=True)
class Fleet:
    """Workers on one database. `launch_s`: how long their launches take; `tracking`: MLflow's address, if any."""

    url: str
    folder: Path
    trials: int = 12
    lease_s: float = 3.0
    launch_s: float = 0.3
    confirm_launches: int = 0
    tracking: str = ""
    started: list[Running] = field(default_factory=list)

    def start(self, host: str, *, launch_s: float | None = None) -> Running:
        more = (self.trials, self.lease_s, launch_s or self.launch_s, self.confirm_launches, self.tracking)
        argv = [sys.executable, "-m", "tests.fleet.worker", self.url, str(self.folder), host, *map(str, more)]
        made = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.started.append(Running(host, made))
        return self.started[-1]

    def end_all(self) -> None:
        """Kill what still runs."""
        for running in self.started:
            running.kill()
            running.process.wait()

    def records(self) -> tuple[TrialRecord, ...]:
        return open_study(self.url, self.folder).trials()


@dataclass(frozen=True)
class Figures:
    """What was left: `states` of all trials, and what must be 0."""

    kills: int
    states: dict[str, int]
    duplicates: int
    twice_measured: int
    left_behind: int
    launches: int

    def line(self) -> str:
        return (
            f"kills {self.kills}, trials {self.states}, launches {self.launches}, duplicates {self.duplicates}, "
            f"measured twice {self.twice_measured}, left behind {self.left_behind}"
        )


def figures(fleet: Fleet, kills: int = 0) -> Figures:
    trials = fleet.records()
    search = [sum(n.purpose.settles for n in t.launches) for t in trials if not t.is_baseline]
    return Figures(
        kills=kills,
        states=dict(Counter(trial.state.value for trial in trials)),
        duplicates=len(trials) - len({trial.key for trial in trials}),
        twice_measured=sum(count > 1 for count in search),
        left_behind=sum(trial.state is TrialState.RUNNING for trial in trials),
        launches=sum(search),
    )


def campaign(fleet: Fleet, hosts: str, kills: int, seed: int) -> Figures:
    """`kills` times kill one worker in the middle of something, and start another one on its host."""
    rng = random.Random(seed)
    crew = {host: fleet.start(host) for host in hosts}
    for _ in range(kills):
        victim = crew[rng.choice(hosts)]
        victim.wait_for("launch")
        time.sleep(rng.uniform(0.0, 1.5 * fleet.launch_s))
        victim.kill()
        victim.end()
        crew[victim.host] = fleet.start(victim.host)
    codes = [running.end() for running in crew.values()]
    assert codes == [0] * len(crew), "\n".join(running.output for running in crew.values())
    return figures(fleet, kills)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seed", type=int, default=os.getpid())
    parser.add_argument("--sweeps", type=int, default=1)
    arguments = parser.parse_args()
    with cluster() as server, tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.sweeps):
            fleet = Fleet(server.create(f"sweep_{number}"), Path(folder), trials=arguments.trials)
            began = time.monotonic()
            seen = campaign(fleet, "abc", arguments.kills, arguments.seed + number)
            print(f"{seen.line()} ({time.monotonic() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
