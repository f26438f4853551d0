"""Runs commands side by side on this machine, hands on what they print line by line, and passes signals on."""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

_PASSED_ON = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM, signal.SIGHUP: signal.SIGTERM}
_LOOK_S = 0.2

Line = tuple[str, str]


def run_side_by_side(commands: Mapping[str, Sequence[str]], on_line: Callable[[str, str], None]) -> dict[str, int]:
    """Exit code by name, once all have ended; below 0 for one that a signal killed.

    `on_line` gets a name and a line of what that command printed on either stream. Each command has a session of
    its own: a Ctrl-C at the terminal reaches it once, passed on from here. SIGTERM and SIGHUP are passed on as
    SIGTERM. Whatever is raised, no command is left: they are sent SIGTERM and waited for.
    """
    lines: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
    children: dict[str, subprocess.Popen[str]] = {}
    try:
        with _passing_on(children):
            for name, argv in commands.items():
                children[name] = _started(argv)
                threading.Thread(target=_read, args=(name, children[name], lines), daemon=True).start()
            for name, line in _until_all_end(lines, len(commands)):
                on_line(name, line)
            return {name: child.wait() for name, child in children.items()}
    finally:
        for child in children.values():
            if child.poll() is None:
                child.terminate()
        for child in children.values():
            child.wait()


def _started(argv: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )


def _read(name: str, child: subprocess.Popen[str], lines: queue.SimpleQueue[Line | None]) -> None:
    if child.stdout is not None:
        with child.stdout:
            for line in child.stdout:
                lines.put((name, line.rstrip("\n")))
    lines.put(None)


def _until_all_end(lines: queue.SimpleQueue[Line | None], count: int) -> Iterator[Line]:
    while count:
        try:
            line = lines.get(timeout=_LOOK_S)  # not without end: signals are handled in between
        except queue.Empty:
            continue
        if line is None:
            count -= 1
        else:
            yield line


@contextmanager
def _passing_on(children: Mapping[str, subprocess.Popen[str]]) -> Iterator[None]:
    """Pass signals on to the children while open; one that is ignored (nohup) stays ignored."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        for child in children.values():
            if child.poll() is None:
                child.send_signal(_PASSED_ON[signal.Signals(number)])

    taken = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    former = {number: signal.signal(number, pass_on) for number in taken}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
