"""Runs shell scripts on this machine, and holds its lock. The only door to `subprocess`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import selectors
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from launchers.base import CommandResult
from launchers.clock import Clock, SystemClock
from launchers.errors import HostBusy, HostLost
from launchers.masking import masked_words

MAX_OUTPUT_BYTES = 8 * 1024 * 1024
_CHUNK_BYTES = 65536
_LOOK_S = 0.05


class LocalShell:
    """A `Shell` on this machine.

    `program` is a POSIX shell; it reads the script from stdin, so that nothing but `program -s` ever
    stands in a process list. Of each output the first 8 MiB are kept; the rest is read and dropped.
    """

    def __init__(self, name: str = "local", program: str = "/bin/sh") -> None:
        self.name = name
        self.program = program

    def run(self, script: str, timeout_s: float) -> CommandResult:
        """Feed `script` to the shell and wait for its end; what it left in the background goes on.

        Raises HostLost when the shell cannot be started or the script outlives `timeout_s` seconds:
        its process group is then killed, as on any exception that interrupts the wait.
        """
        result = _ended(self._spawn(), script.encode("utf-8", "surrogateescape"), timeout_s)
        if result is None:
            raise HostLost(f"{self.name}: no end of the script within {timeout_s:g} s; it was killed")
        return result

    def _spawn(self) -> subprocess.Popen[bytes]:
        try:
            return _started((self.program, "-s"))
        except OSError as error:
            raise HostLost(f"{self.name}: {self.program} cannot be run: {error}") from error

    def address(self, port: int) -> str:
        """This machine's own loopback address."""
        return f"127.0.0.1:{port}"

    def num_breaks(self) -> int:
        """0: there is no connection that could break."""
        return 0

    @contextlib.contextmanager
    def hold(self, lock_path: str) -> Iterator[None]:
        """Hold the lock file (a leading `~/` is the home folder); the kernel frees it when this process ends.

        Raises HostBusy when another process holds it, HostLost when the file cannot be opened.
        """
        path = Path(lock_path).expanduser()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            told = f"the lock {str(path)!r} cannot be opened: {error.strerror}; may you write in its folder?"
            raise HostLost(f"{self.name}: {told}") from error
        try:
            _lock(descriptor, self.name)
            yield  # the file stays: with a lock file removed, two processes can hold two files of one name
        finally:
            os.close(descriptor)


def _never() -> bool:
    return False


def run_program(
    argv: Sequence[str],
    stdin: bytes,
    timeout_s: float,
    env: Mapping[str, str],
    given_up: Callable[[], bool] = _never,
) -> CommandResult | None:
    """Run a program on this machine, without a shell, `env` added to the environment; None when it took too long.

    Or when it was `given_up` meanwhile. It is then killed with its process group. Raises OSError when it cannot be
    started.
    """
    return _ended(_started(argv, {**os.environ, **env}), stdin, timeout_s, given_up)


def _started(argv: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """In a session of its own: a Ctrl-C at the terminal does not reach it, and its group is ours to kill."""
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True, env=env)


def _ended(
    started: subprocess.Popen[bytes], stdin: bytes, timeout_s: float, given_up: Callable[[], bool] = _never
) -> CommandResult | None:
    """How it ended; None when it took too long. Killed with its group then, and when an exception interrupts."""
    with started as process:  # which closes the pipes and reaps, in the end
        try:
            output = _exchange(process, stdin, timeout_s, given_up)
        finally:
            if process.returncode is None:  # not reaped yet, so the number still names this group
                os.killpg(process.pid, signal.SIGKILL)
    code = process.returncode
    return None if output is None else CommandResult(code if code >= 0 else 128 - code, *output)


def _lock(descriptor: int, name: str) -> None:
    """Lock the open file and write into it who did, for the message that the next one gets. Raises HostBusy."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 1000).decode("utf-8", "backslashreplace").strip()
        raise HostBusy(f"{name} is held by another specsweep: {holder or 'unknown'}", holder) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{lock_holder(SystemClock())}\n".encode())


def lock_holder(clock: Clock) -> str:
    """One line that names this process to whoever finds the lock taken; passwords in addresses are left out.

    It can be encoded as UTF-8.
    """
    since = clock.now().isoformat(timespec="seconds")
    command = shlex.join(masked_words(sys.argv))
    return _one_line(f"{this_process()}, since {since}: {command[:400]}")


def this_process() -> str:
    """How that line begins, up to a comma."""
    return _one_line(f"pid {os.getpid()} on {platform.node()}")


def _one_line(text: str) -> str:
    return " ".join(text.split()).encode("utf-8", "backslashreplace").decode()


def _exchange(
    process: subprocess.Popen[bytes], script: bytes, timeout_s: float, given_up: Callable[[], bool]
) -> tuple[bytes, bytes] | None:
    """Feed and drain the pipes until the process ended: (stdout, stderr), or None when it took too long.

    A background process that inherited the pipes is not waited for.
    """
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("all three streams must be pipes")
    clock = SystemClock()
    deadline_s = clock.monotonic_s() + timeout_s
    stdout, stderr = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdin, selectors.EVENT_WRITE, _feeder(process.stdin, script))
        selector.register(process.stdout, selectors.EVENT_READ, _drain(process.stdout, stdout))
        selector.register(process.stderr, selectors.EVENT_READ, _drain(process.stderr, stderr))
        while selector.get_map() and clock.monotonic_s() < deadline_s and not given_up():
            # In this order: only what has ended before the look can have nothing more to say after it.
            has_ended = process.poll() is not None
            ready = selector.select(0 if has_ended else _LOOK_S)
            if has_ended and not ready:
                break
            for key, _ in ready:
                if next(key.data, None) is None:
                    selector.unregister(key.fileobj)
    try:
        process.wait(0.0 if given_up() else max(0.0, deadline_s - clock.monotonic_s()))
    except subprocess.TimeoutExpired:
        return None
    return bytes(stdout), bytes(stderr)


def _feeder(pipe: IO[bytes], script: bytes) -> Iterator[int]:
    """Write a piece each time the pipe is ready; closes it after the last, or when nobody reads any more."""
    os.set_blocking(pipe.fileno(), False)
    unsent = memoryview(script)
    with contextlib.suppress(BrokenPipeError):
        while unsent:
            count = os.write(pipe.fileno(), unsent[:_CHUNK_BYTES])
            unsent = unsent[count:]
            yield count
    pipe.close()


def _drain(pipe: IO[bytes], kept: bytearray) -> Iterator[int]:
    """Read a piece each time the pipe is ready, until its end; what does not fit is dropped."""
    while chunk := os.read(pipe.fileno(), _CHUNK_BYTES):
        kept += chunk[: MAX_OUTPUT_BYTES - len(kept)]
        yield len(chunk)
