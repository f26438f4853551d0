"""Faults of files that are moved, replaced, copied or removed under a sweep, or are none at all."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from tests.chaos.disks import covered
from tests.chaos.stage import Stage
from tests.chaos.sweeps import STUDY
from tests.chaos.table import Play, fault
from tests.chaos.zygote import Command

GOES_ON = "5, and what happened; put back, the sweep goes on"


def in_trial_1(stage: Stage, *words: str) -> Command:
    """A sweep whose second launch is being measured; launches take seconds."""
    stage.sweep.set_fault("slow", "0.4", 3)
    command = stage.sweep.start(*words)
    stage.in_phase(command, "measuring")
    return command


@fault(
    "the study's file is moved away in mid-sweep",
    "stores",
    "optuna.db is renamed in a launch, later back",
    GOES_ON,
)
def moved(stage: Stage) -> None:
    command = in_trial_1(stage)
    stage.ledger.read(stage.sweep)
    file, away = stage.folder / "optuna.db", stage.folder / "away"
    file.rename(away)
    code = command.wait()
    away.rename(file)
    stage.check(code == 5, command.output[-800:])
    stage.seen.append(f"exit code {code}")
    stage.says(command.output, r"specsweep: stopped: the study's file was moved[^\n]*")


@fault("the study's file is replaced in mid-sweep", "stores", "in a launch a copy is put in its place",
       "5, and what happened: nobody would read what is written; it goes on with the copy")  # fmt: skip
def replaced(stage: Stage) -> None:
    command = in_trial_1(stage)
    shutil.copy(stage.folder / "optuna.db", stage.folder / "copy")
    (stage.folder / "copy").rename(stage.folder / "optuna.db")
    stage.ended(command, 5, r"specsweep: stopped: the study's file was moved[^\n]*")


@fault("the study's folder becomes read-only in mid-sweep", "stores",
       "a read-only view is mounted over the folder in a launch; what a process has open it may write on",
       "the server is stopped; 5, and which file; writable again the sweep goes on")  # fmt: skip
def becomes_read_only(stage: Stage) -> None:
    command = in_trial_1(stage)
    with covered(stage.folder):
        stage.ended(command, 5, r"specsweep: stopped: [^\n]*Read-only file system[^\n]*")


@fault("the study's file is copied in mid-sweep", "stores", "optuna.db is copied twenty times while it is written",
       "a copy is gone on with, or refused as damaged: 5; the sweep is not disturbed")  # fmt: skip
def copied(stage: Stage) -> None:
    command = stage.sweep.start()
    copies: list[Path] = []
    codes: set[int] = set()
    stage.until(lambda: "trial 0: " in command.output, "a launch", command)
    while command.is_running and len(copies) < 20:
        copies.append(stage.folder / f"copy-{len(copies)}.db")
        shutil.copy(stage.folder / "optuna.db", copies[-1])
        time.sleep(0.1)
    stage.ended(command, 0)
    for copy in copies[:: max(1, len(copies) // 4)]:
        again = stage.sweep.start(f'study.storage="sqlite:///{copy}"', "tracking=none")
        codes.add(again.wait())
        stage.check(again.wait() in (0, 5), again.output[-800:])
    stage.seen.append(f"copies: exit code {', '.join(map(str, sorted(codes)))}")
    stage.is_ended = True


@fault("the lock of a host is removed, and another sweep begins", "orchestrator",
       "host.state_dir is removed in a launch, and a second study is started on the host",
       "the first one sees it before its next launch and ends with 4; the second goes on")  # fmt: skip
def lock_removed(stage: Stage) -> None:
    first = in_trial_1(stage)
    shutil.rmtree(stage.sweep.state_dir)
    second = stage.sweep.start("study.name=second", "tracking=none")
    stage.ended(first, 4, r"specsweep: [^\n]*the lock file was removed[^\n]*")
    stage.ended(second, 0)


def _directory(*where: str) -> Play:
    """A directory stands where a lock file belongs."""

    def play(stage: Stage) -> None:
        place = Path(stage.folder, *where)
        place.mkdir(parents=True)
        stage.ended(stage.sweep.start(), 5, r"the lock [^\n]*: Is a directory")
        place.rmdir()

    return play


for _name, _where in (("host", ("state", "host.lock")), ("study", (f"{STUDY}.lock",))):
    fault(f"the lock of the {_name} is a directory", "host" if _name == "host" else "stores", "mkdir",
          "5, and which; nothing was begun")(_directory(*_where))  # fmt: skip
