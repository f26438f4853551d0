"""The fault table: rows are declared beside what makes the fault, played one by one, and written as Markdown."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sweeper.errors import SpecsweepError
from sweeper.storing.losses import STORAGE_ERRORS
from tests.chaos.stage import House, NotHere, Stage
from tests.chaos.zygote import Zygote

Play = Callable[[Stage], None]
BROKEN = (
    AssertionError,
    OSError,
    ValueError,
    LookupError,
    subprocess.SubprocessError,
    SpecsweepError,
    *STORAGE_ERRORS,
)
"""What ends a row, not the table."""


@dataclass(frozen=True)
class Row:
    """One fault. `where`: what it strikes; `how`: what makes it here, and in place of what."""

    name: str
    where: str
    how: str
    expected: str
    play: Play
    is_quick: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a row went. `missing`: why this machine could not make the fault; empty when it could."""

    row: Row
    seen: tuple[str, ...]
    wrong: tuple[str, ...]
    seconds: float
    missing: str = ""

    @property
    def mark(self) -> str:
        """A word for the last column."""
        return "not run" if self.missing else "no" if self.wrong else "yes"


ROWS: list[Row] = []


def fault(name: str, where: str, how: str, expected: str, *, quick: bool = False) -> Callable[[Play], Play]:
    """Declare a row of the table."""

    def declared(play: Play) -> Play:
        ROWS.append(Row(name, where, how, expected, play, quick))
        return play

    return declared


def play_all(rows: Sequence[Row], folder: Path, say: Callable[[str], None]) -> list[Outcome]:
    """Play rows one after the other, each in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with Zygote() as zygote, ExitStack() as stack:
        house = House(folder, zygote, stack)
        for number, row in enumerate(rows):
            outcomes.append(play(row, folder / f"row-{number}", house))
            done = outcomes[-1]
            say(f"{done.mark:8} {row.name} ({done.seconds:.0f} s): {'; '.join(done.seen)} {done.missing}")
            keep(folder / "outcomes.jsonl", done)
            for line in done.wrong:
                say(f"         WRONG: {line}")
    return outcomes


def play(row: Row, folder: Path, house: House) -> Outcome:
    """One row: the fault, then the next start, then the look at everything."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began, missing = time.monotonic(), ""
    with ExitStack() as stack:
        stage = Stage(folder, house, stack)
        try:
            row.play(stage)
            stage.finish()
        except NotHere as why:
            missing = str(why)
        except BROKEN as error:
            stage.wrong.append(f"{type(error).__name__}: {error}"[:2000])
    return Outcome(row, tuple(stage.seen), tuple(stage.wrong), time.monotonic() - began, missing)


def keep(path: Path, done: Outcome) -> None:
    """Add an outcome to the file from which the page is written."""
    row = done.row
    told = {"fault": row.name, "where": row.where, "how": row.how, "expected": row.expected, "seen": done.seen,
            "missing": done.missing, "mark": done.mark}  # fmt: skip
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(told) + "\n")
