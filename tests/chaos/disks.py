"""Faults of disks: full here, full on the host, read-only; files that may not grow."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.audit import processes_of
from tests.chaos.engines import Kind
from tests.chaos.stage import NotHere, Stage
from tests.chaos.sweeps import Sweep
from tests.chaos.table import fault

SMALL = "a tmpfs of 64 MiB"


def fill(place: Path, left_kib: int) -> Path:
    """Fill a file system up to so many KiB; the file that does it."""
    waste = place / "waste"
    with waste.open("wb") as file:
        try:
            while True:
                file.write(bytes(65536))
                file.flush()
        except OSError:
            pass
    with waste.open("r+b") as file:
        file.truncate(max(0, waste.stat().st_size - left_kib * 1024))
    return waste


@fault("the study's disk is full", "stores", f"{SMALL}, filled after the first trial",
       "5, and what was attempted; with room again the sweep goes on")  # fmt: skip
def study_full(stage: Stage) -> None:
    small = stage.mount()
    words = ("host.state_dir=" + str(stage.folder / "state"),)
    stage.use(Sweep(small / "sweep", stage.house.zygote, words=(*stage.sweep.words, *words)))
    stage.ended(stage.sweep.start("budget.trials=1"), 0)
    waste = fill(small, 4)
    stage.ended(stage.sweep.start(), 5, r"specsweep: [^\n]*(full|space|disk)[^\n]*")
    waste.unlink()


@fault("a file of the study may not grow", "stores", "RLIMIT_FSIZE of the orchestrator, 300 KiB",
       "5, and what was attempted; without the limit the sweep goes on")  # fmt: skip
def file_limit(stage: Stage) -> None:
    stage.ended(stage.sweep.start("budget.trials=1"), 0)
    size = (stage.folder / "optuna.db").stat().st_size
    stage.ended(stage.sweep.start(limits={"RLIMIT_FSIZE": size}), 5, r"specsweep: [^\n]*")


@fault("MLflow's files are on a full disk", "stores", f"{SMALL} for mlflow.db and its files, full",
       "the sweep goes on and says so; MLflow is caught up with later")  # fmt: skip
def mlflow_full(stage: Stage) -> None:
    small = stage.mount()
    database = small / "mlflow.db"
    database.write_bytes(stage.house.zygote.new_mlflow().read_bytes())
    uri = f"sqlite:///{database}"
    stage.local(f"tracking.artifact_location={small}/files", tracking=uri)
    waste = fill(small, 0)
    stage.ended(stage.sweep.start(), 0, r"MLflow: [^\n]*")
    waste.unlink()


@fault("the host's disk is full", "host", f"{SMALL} for host.state_dir, full before the start",
       "no fault of a configuration: 5; with room again the sweep goes on")  # fmt: skip
def host_full(stage: Stage) -> None:
    small = stage.mount()
    stage.local()
    words = ["host.state_dir=" + str(small / "state")]
    stage.ended(stage.sweep.start("budget.trials=1", *words), 0)
    waste = fill(small, 0)
    stage.ended(stage.sweep.start(*words), 5, r"specsweep: [^\n]*")
    waste.unlink()
    stage.after = tuple(words)


@fault("the host's disk takes no further file", "host", "a tmpfs of 40 inodes for host.state_dir, all taken",
       "no fault of a configuration: 5; with room again the sweep goes on")  # fmt: skip
def no_inodes(stage: Stage) -> None:
    small = stage.mount("nr_inodes=40")
    stage.local()
    words = ["host.state_dir=" + str(small / "state")]
    stage.ended(stage.sweep.start("budget.trials=1", *words), 0)
    taken = list(used_up(small))
    stage.ended(stage.sweep.start(*words), 5, r"specsweep: [^\n]*")
    for file in taken:
        file.unlink()
    stage.after = tuple(words)


def used_up(place: Path) -> Iterator[Path]:
    """Empty files, until there can be no more."""
    for number in range(1000):
        try:
            (place / f"taken-{number}").touch()
        except OSError:
            return
        yield place / f"taken-{number}"


@fault("the server's log fills the host's disk", "host", f"{SMALL} for host.state_dir; the server writes 100 MiB",
       "that launch has crashed; further ones are no fault of theirs: 5; later the sweep goes on")  # fmt: skip
def log_fills(stage: Stage) -> None:
    small = stage.mount()
    words = ["host.state_dir=" + str(small / "state")]
    stage.local()
    stage.ended(stage.sweep.start("budget.trials=1", *words), 0)
    stage.sweep.set_fault("flood", "100", 1)
    stage.ended(stage.sweep.start(*words), 5, r"specsweep: [^\n]*")
    failed = [n.failure.kind for t in stage.sweep.trials() for n in t.launches if n.failure]
    stage.seen.append(", ".join(failed))
    stage.check(failed[0] == Kind.SERVER_CRASH and Kind.HOST_DIRTY in failed, f"{failed}")
    for log in small.glob("state/servers/*/log"):
        log.unlink()
    stage.after = tuple(words)


@fault(
    "a disk is nearly full",
    "host",
    "limits.free_gib is set to more than there is",
    "5 before the launch, and which disk",
)
def nearly_full(stage: Stage) -> None:
    stage.ended(stage.sweep.start("limits.free_gib=1000000"), 5, r"a disk is nearly full[^\n]*")


def remount(place: Path, how: str) -> None:
    """Make a small file system read-only, or writable again. Raises NotHere."""
    words = ["mount", "-o", f"remount,{how}", str(place)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        raise NotHere("no file system can be made read-only here")


@fault("the host's home is read-only", "host",
       "a tmpfs for host.state_dir, mounted read-only (chmod does not stop root)",
       "5, and which folder; nothing was begun")  # fmt: skip
def read_only(stage: Stage) -> None:
    small = stage.mount()
    remount(small, "ro")
    stage.local()
    words = ["host.state_dir=" + str(small / "state")]
    stage.ended(stage.sweep.start(*words), 5, r"specsweep: [^\n]*")
    remount(small, "rw")
    stage.after = tuple(words)


@contextmanager
def covered(place: Path) -> Iterator[None]:
    """While open, nothing in `place` can be opened for writing. Raises NotHere.

    A read-only view of the same folder is mounted over it: a file system with files open for writing, as a log,
    cannot be remounted.
    """
    words = ["mount", "--bind", str(place), str(place)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        raise NotHere("no folder can be mounted a second time here")
    try:
        remount(place, "bind,ro")
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@fault("the host's home becomes read-only in mid-sweep", "host",
       "a read-only view is mounted over host.state_dir in the benchmark; what a process has open it may write on",
       "the launch under way counts, its server is stopped; 5, and what could not be written; "
       "writable again the sweep goes on")  # fmt: skip
def becomes_read_only(stage: Stage) -> None:
    small = stage.mount()
    stage.local()
    words = ["host.state_dir=" + str(small / "state")]
    stage.sweep.set_fault("slow", "0.4", 1)
    command = stage.sweep.start(*words)
    stage.in_phase(command, "measuring", trial=0)
    with covered(small):
        stage.check(not writable(small / "state"), "the folder can be written to")
        stage.ended(command, 5, r"specsweep: [^\n]*")
        left = processes_of(stage.folder)
        stage.check(not left, f"left running: {left}")
    measured = [n.ok for t in stage.sweep.trials() if t.is_baseline for n in t.launches]
    stage.check(measured == [True], f"launches of the baseline: {measured}")
    stage.seen.append("the baseline's launch counts")
    stage.after = tuple(words)


def writable(folder: Path) -> bool:
    try:
        (folder / "probe").touch()
    except OSError:
        return False
    return True


@fault(
    "the study's folder is read-only",
    "stores",
    "a tmpfs for the study, mounted read-only",
    "2 or 5, and which file; nothing was begun",
)
def study_read_only(stage: Stage) -> None:
    small = stage.mount()
    words = ("host.state_dir=" + str(stage.folder / "state"),)
    stage.use(Sweep(small / "sweep", stage.house.zygote, words=(*stage.sweep.words, *words)))
    remount(small, "ro")
    command = stage.sweep.start()
    code = command.wait()
    stage.seen.append(f"exit code {code}")
    stage.check(code in (2, 5), command.output[-800:])
    stage.says(command.output, r"specsweep: [^\n]*")
    remount(small, "rw")
