"""The shell of a remote host: scripts, the host's lock and its ports, through one SSH connection that is mended.

Only the ssh*.py files use paramiko.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator

import paramiko

from launchers.base import CommandResult
from launchers.clock import Clock, SystemClock
from launchers.errors import HostBusy, HostLost, LinkLost
from launchers.ssh_config import SshTarget
from launchers.ssh_forward import Forward
from launchers.ssh_line import SESSION_TIMEOUT_S, Line
from launchers.ssh_link import Link, Pace
from launchers.ssh_lock import HostLock
from launchers.ssh_script import LOST, closing, end_shell_script, exchange, start_shell

__all__ = ["Pace", "SshShell", "SshTarget"]

MAX_SCRIPTS = 7
"""Scripts at once. With the lock's session, and one that ends another, below the ten of sshd's MaxSessions."""

USUAL_PACE = Pace()
_END_TIMEOUT_S = 10.0


class SshShell:
    """A `Shell` on another machine. Threads may share it; it connects when it is first used.

    A connection that broke is made anew for up to `target.reconnect_s` seconds, with growing pauses; the very
    first one is tried for a few seconds only. What no retry can mend raises SshRefused. `close` (which the end of
    `hold` does) leaves nothing open on this side; the shell can be used again, and then connects anew.
    """

    def __init__(
        self, target: SshTarget, name: str = "", pace: Pace = USUAL_PACE, clock: Clock | None = None
    ) -> None:
        self.target = target
        self.name = name or target.destination
        self._pace = pace
        self._clock = clock or SystemClock()
        self._line = Line(target, self.name, pace, self._clock)
        self._slots = threading.BoundedSemaphore(MAX_SCRIPTS)
        self._guard = threading.Lock()
        self._forwards: dict[int, Forward] = {}

    def run(self, script: str, timeout_s: float) -> CommandResult:
        """Feed `script` to /bin/sh on the host and wait for its end; what it left in the background goes on.

        Beyond `timeout_s` seconds, or when the wait is interrupted, its process group is killed, if the connection
        still stands. Raises LinkLost when the connection broke meanwhile (the script may go on, and end well),
        HostBusy when the lock that `hold` took is somebody else's now, HostLost for all else.
        """
        if not self._slots.acquire(timeout=timeout_s):
            raise HostLost(f"{self.name}: {MAX_SCRIPTS} other scripts did not end within {timeout_s:g} s")
        try:
            return self._run(script.encode("utf-8", "surrogateescape"), timeout_s)
        finally:
            self._slots.release()

    @contextlib.contextmanager
    def hold(self, lock_path: str) -> Iterator[None]:
        """Hold the lock file on the host, across broken connections; closes the shell in the end.

        Raises HostBusy when another process holds it, HostLost.
        """
        lock = HostLock(self.name, lock_path, self._pace, self._clock)
        with self._guard:
            held = self._line.lock
            self._line.lock = held or lock
        if held is not None:
            raise HostBusy(f"{self.name} is held by another specsweep: {held.holder}", held.holder)
        ended = threading.Event()
        try:
            self._line.live()
            threading.Thread(target=self._beat, args=(lock, ended), name=f"{self.name}: beat", daemon=True).start()
            yield
        finally:
            ended.set()
            self._line.lock = None
            lock.release()
            self.close()

    def address(self, port: int) -> str:
        """A port of this machine that leads to `port` of the host's loopback address until `close`.

        While the connection is down, whoever connects there is disconnected at once. Raises HostLost.
        """
        self._line.live()
        with self._guard:
            if port not in self._forwards:
                self._forwards[port] = Forward(port, self._tunnel)
            return self._forwards[port].address

    def num_breaks(self) -> int:
        """How many connections have broken so far; those that were closed on purpose do not count."""
        return self._line.num_breaks

    def close(self) -> None:
        """Close the connection and every forwarded port."""
        with self._guard:
            forwards, self._forwards = self._forwards, {}
        for forward in forwards.values():
            forward.close()
        self._line.close()

    def _run(self, script: bytes, timeout_s: float) -> CommandResult:
        token = f"specsweep-{secrets.token_hex(8)}"
        link, channel = self._line.session(self._line.live)
        with closing(channel):
            try:
                start_shell(channel, token, SESSION_TIMEOUT_S)
                # The token is the shell's $1, which no script shall see.
                result = exchange(channel, b"set --\n" + script, timeout_s, self._clock)
            except LOST as error:
                raise self._lost(link, error) from error
            except BaseException:
                self._end(link, token)
                raise
            if result is None:
                end = "it was killed" if self._end(link, token) else "whether it still runs is unknown"
                raise HostLost(f"{self.name}: no end of the script within {timeout_s:g} s; {end}")
        if result.exit_code == -1:  # ended by a signal, says sshd; or nobody said anything
            raise self._lost(link, EOFError("its shell was killed"))
        return result

    def _lost(self, link: Link, error: Exception) -> HostLost:
        """What it means that a script ended without an exit code."""
        if link.survived():
            return HostLost(f"{self.name}: a script ended without an exit code: {error or type(error).__name__}")
        self._line.note_break(link)
        return LinkLost(f"{self.name}: the connection broke while a script ran; it may have run to its end or not")

    def _end(self, link: Link, token: str) -> bool:
        """Kill the shell `token` on the host with its process group; whether that is certain.

        To close its channel would not do: the script loses its input and outputs but runs on (sshd sends no signal
        where there is no terminal), and goes on counting against MaxSessions.
        """
        try:
            _, channel = self._line.session(lambda: link)
            with closing(channel):
                start_shell(channel, f"specsweep-{secrets.token_hex(8)}", _END_TIMEOUT_S)
                result = exchange(channel, end_shell_script(token).encode(), _END_TIMEOUT_S, self._clock)
        except (HostLost, *LOST):
            return False
        return result is not None and result.exit_code == 0

    def _tunnel(self, port: int) -> paramiko.Channel | None:
        """A channel to a port of the host over the connection of the moment; None when it cannot be had."""
        link = self._line.current()
        if link is None:
            return None
        try:
            where, origin = ("127.0.0.1", port), ("127.0.0.1", 0)
            return link.transport.open_channel("direct-tcpip", where, origin, timeout=SESSION_TIMEOUT_S)
        except LOST:  # nothing listens there, or the connection is gone
            return None

    def _beat(self, lock: HostLock, ended: threading.Event) -> None:
        while not ended.wait(self._pace.beat_s):
            lock.beat()
