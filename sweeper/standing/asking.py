"""Asks running processes to end their sweep. Only a process that is still that very one gets a signal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sweeper.standing.process import ProcessId, is_alive


def ask_to_end(process: ProcessId, *, now: bool, proc: Path = Path("/proc")) -> bool:
    """Ask it to end after the launch under way, or (`now`) to abandon that. Whether it was told.

    It is not when it is gone, or (where /proc can say so) does not listen, as it is just starting or ending.
    Asking twice is as once. Raises PermissionError for another user's process.
    """
    number = signal.SIGTERM if now else signal.SIGUSR1
    with suppress(ProcessLookupError), _held(process.pid) as send:
        if is_alive(process, proc) and _catches(process.pid, number, proc):
            send(number)
            return True
    return False


class _Send:
    """Sends signals to one process; a number that was given again meanwhile is no other process's."""

    def __init__(self, pid: int, descriptor: int | None) -> None:
        self._pid = pid
        self._descriptor = descriptor

    def __call__(self, number: signal.Signals) -> None:
        if self._descriptor is not None and sys.platform == "linux":
            signal.pidfd_send_signal(self._descriptor, number)
        else:
            os.kill(self._pid, number)


@contextmanager
def _held(pid: int) -> Iterator[_Send]:
    """The process behind a number as of now, held by a descriptor where the system has that."""
    if sys.platform != "linux":
        yield _Send(pid, None)
        return
    descriptor = os.pidfd_open(pid)
    try:
        yield _Send(pid, descriptor)
    finally:
        os.close(descriptor)


def _catches(pid: int, number: signal.Signals, proc: Path) -> bool:
    """Whether the process has a handler for it: without one SIGUSR1 would kill it beside its server."""
    try:
        lines = (proc / str(pid) / "status").read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return not proc.is_dir()
    caught = next((line.partition(":")[2] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)
