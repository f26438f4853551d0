"""Which process this is, so that another one can tell whether it still lives. Pids alone are given again."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from sweeper.records import Record

_START_TIME = 19
"""Of the fields of /proc/PID/stat behind the command's name: when it started, in ticks since the boot."""


class ProcessId(Record):
    """A process on a machine. Where there is no /proc the last two are empty, and the pid alone decides."""

    machine: str
    pid: int
    start_time: str
    boot_id: str


def this_process(proc: Path = Path("/proc")) -> ProcessId:
    """The identity of the caller."""
    return ProcessId(
        machine=socket.gethostname(),
        pid=os.getpid(),
        start_time=_start_time(os.getpid(), proc),
        boot_id=_boot(proc),
    )


def is_alive(other: ProcessId, proc: Path = Path("/proc")) -> bool | None:
    """Whether that very process runs; None when it is on another machine."""
    if other.machine != socket.gethostname():
        return None
    if other.boot_id != _boot(proc):
        return False
    if other.start_time:
        return _start_time(other.pid, proc) == other.start_time
    try:
        os.kill(other.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_time(pid: int, proc: Path) -> str:
    """Empty for a process that is gone, or a zombie."""
    try:
        fields = (proc / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if len(fields) <= _START_TIME or fields[0] in "ZX" else fields[_START_TIME]


def _boot(proc: Path) -> str:
    try:
        return (proc / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
