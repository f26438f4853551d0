"""What setproctitle and prctl do to a process, by ctypes."""

from __future__ import annotations

import ctypes
import signal
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15


def _prctl(option: int, value: int | bytes) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def set_title(title: str) -> None:
    """Overwrite the arguments AND the environment that /proc shows, as setproctitle does.

    The process keeps its environment, but nobody can read it from outside any more: a marker in it is lost.
    """
    _prctl(PR_SET_NAME, title.encode()[:15])
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    arg_start, env_end = int(fields[45]), int(fields[48])
    if arg_start and env_end > arg_start:
        size = env_end - arg_start
        text = title.encode()[: size - 1]
        ctypes.memmove(arg_start, text + b"\0" * (size - len(text)), size)


def die_with_parent() -> None:
    """The kernel sends SIGKILL when the thread that started this process ends."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
