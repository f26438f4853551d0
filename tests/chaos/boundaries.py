"""Strikes a command at one line of the main path: no hook in the product, Python's own trace does it.

A boundary is a line of one of `FILES`. An undisturbed command under `Plan(record=...)` tells which lines a sweep
passes; a command under `Plan(at=..., hit=..., signals=...)` sends itself these signals just before that line.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
FILES = (
    "sweeper/loop.py",
    "sweeper/trial.py",
    "sweeper/serving/server.py",
    "sweeper/study.py",
    "sweeper/asking.py",
    "sweeper/books.py",
    "sweeper/storing/storage.py",
    "sweeper/storing/database.py",
    "sweeper/storing/ownership.py",
    "sweeper/storing/leases.py",
    "sweeper/study_setup.py",
    "sweeper/storing/study_facts.py",
    "sweeper/nights/on_finish.py",
    "sweeper/commands/run.py",
    "sweeper/tracking/tracker.py",
    "sweeper/tracking/runs.py",
    "sweeper/tracking/experiment.py",
    "launchers/host.py",
    "launchers/shell.py",
)
MAIN_PATH = ("sweeper/loop.py", "sweeper/trial.py", "sweeper/serving/server.py")
"""What is struck before each of its lines; of the other files a sample."""


@dataclass(frozen=True)
class Plan:
    """What happens in one command. `at`: FILE:LINE or FILE:FUNCTION; `hit`: at which passing of it, from 1."""

    at: str = ""
    hit: int = 1
    signals: tuple[int, ...] = ()
    record: str = ""

    def data(self) -> dict[str, Any]:
        """As the zygote is told."""
        return asdict(self)

    def install(self) -> None:
        """Trace this process from the moment the command knows its configuration (that part is slow)."""
        from sweeper.commands import run

        real, trace = vars(run)["make_launcher"], self._trace()

        def make_launcher(spec: Any) -> Any:
            sys.settrace(trace)
            frame = sys._getframe(1)
            frame.f_trace = trace(frame, "call", None)
            return real(spec)

        vars(run)["make_launcher"] = make_launcher

    def _trace(self) -> Callable[..., Any]:
        names = {str(ROOT / name): name for name in FILES}
        wanted_file, _, wanted = self.at.rpartition(":")
        if self.at:
            names = {str(ROOT / wanted_file): wanted_file}
        seen: Counter[str] = Counter()

        def on_line(frame: FrameType, event: str, _arg: object) -> Any:
            if event == "line" and (self.record or str(frame.f_lineno) == wanted):
                self._pass(f"{names[frame.f_code.co_filename]}:{frame.f_lineno}", seen)
            return on_line

        def on_call(frame: FrameType, _event: str, _arg: object) -> Any:
            if frame.f_code.co_filename not in names:
                return None
            if frame.f_code.co_name == wanted:
                self._pass(self.at, seen)
            return on_line

        return on_call

    def _pass(self, place: str, seen: Counter[str]) -> None:
        """A boundary is reached: note it at its first time, or strike at the wanted time."""
        seen[place] += 1
        if self.record and seen[place] == 1:
            with Path(self.record).open("a") as file:
                file.write(f"{place}\n")
        if not self.record and seen[place] == self.hit:
            self._strike()

    def _strike(self) -> None:
        sys.settrace(None)
        with Path(f"struck-{os.getpid()}").open("w") as file:
            file.write(f"{self.at} {self.hit}")
        for number in self.signals:
            os.kill(os.getpid(), signal.Signals(number))


def recorded(path: Path) -> list[str]:
    """The boundaries that a command passed, in order."""
    return list(dict.fromkeys(path.read_text().split()))
