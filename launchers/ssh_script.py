"""Runs one script in one SSH channel: feeds it, drains both outputs, and can end it on the host."""

from __future__ import annotations

import contextlib
import selectors
import threading
from collections.abc import Iterator
from importlib.resources import files

import paramiko

from launchers.base import CommandResult
from launchers.clock import Clock
from launchers.replies import quote
from launchers.shell import MAX_OUTPUT_BYTES

REMOTE = files("launchers").joinpath("ssh.sh").read_text(encoding="utf-8")
_CHUNK_BYTES = 32768
_LOOK_S = 0.05
_SETTLE_S = 0.5
LOST = (paramiko.SSHException, EOFError, OSError)
"""What paramiko raises when a channel or its connection is gone."""


def shut(channel: paramiko.Channel) -> None:
    """Close the channel; paramiko raises when the connection is gone, which is no news then."""
    with contextlib.suppress(*LOST):
        channel.close()


@contextlib.contextmanager
def closing(channel: paramiko.Channel) -> Iterator[None]:
    """Shut the channel in the end."""
    try:
        yield
    finally:
        shut(channel)


def start_shell(channel: paramiko.Channel, token: str, timeout_s: float) -> None:
    """Run `/bin/sh -s TOKEN` in the channel, whatever the login shell. Raises one of `LOST`.

    No terminal: with one, the end of the connection would kill what the script left running. The token, a random
    word, is how the shell is found again on the host.
    """
    timer = threading.Timer(timeout_s, _give_up, (channel,))  # paramiko itself waits without a limit
    timer.daemon = True
    timer.start()
    try:
        channel.exec_command(f"/bin/sh -s {token}")
    finally:
        timer.cancel()


def _give_up(channel: paramiko.Channel) -> None:
    """End the wait for the answer to a request on the channel.

    To close it is not enough: a connection that broke in the moment before the request has closed it already, and
    the request then waits for an event that nobody sets any more.
    """
    shut(channel)
    channel.event.set()


def end_shell_script(token: str) -> str:
    """The script that kills the shell `token`, with its process group."""
    return f"{REMOTE}\nend_shell {quote(token)}\n"


def exchange(channel: paramiko.Channel, script: bytes, timeout_s: float, clock: Clock) -> CommandResult | None:
    """Feed the script and collect what comes until its end; None when it took longer than `timeout_s`.

    The exit code is -1 when none arrived: the shell was killed, or the connection broke. A background process
    that inherited the outputs is not waited for. Raises one of `LOST`.
    """
    deadline_s = clock.monotonic_s() + timeout_s
    talk = _Talk(channel, script)
    with selectors.DefaultSelector() as selector:
        selector.register(channel.fileno(), selectors.EVENT_READ)  # from now on readable whenever there is news
        quiet_since_s: float | None = None
        while True:
            had_ended = _has_ended(channel)  # asked before the look: what comes between the two must be seen
            moved = talk.move()
            now_s = clock.monotonic_s()
            quiet_since_s = None if moved or not channel.exit_status_ready() else quiet_since_s or now_s
            is_quiet = quiet_since_s is not None and now_s - quiet_since_s > _SETTLE_S
            if not moved and (had_ended or is_quiet):
                return CommandResult(channel.recv_exit_status(), bytes(talk.stdout), bytes(talk.stderr))
            if now_s > deadline_s:
                return None
            if moved:
                continue
            if channel.eof_received:  # the selector would return at once, for ever
                channel.status_event.wait(_LOOK_S)
            else:
                selector.select(_LOOK_S if talk.is_fed else _LOOK_S / 10)


def _has_ended(channel: paramiko.Channel) -> bool:
    """Whether nothing more will arrive; what has arrived may still have to be read."""
    return bool(channel.closed or (channel.eof_received and channel.exit_status_ready()))


class _Talk:
    """What was sent to and received from a script so far. Both outputs are read: one left unread blocks both."""

    def __init__(self, channel: paramiko.Channel, script: bytes) -> None:
        self._channel = channel
        self._unsent = memoryview(script)
        self.is_fed = False
        self.stdout, self.stderr = bytearray(), bytearray()

    def move(self) -> bool:
        """Send and receive what is possible without waiting; whether anything was."""
        channel = self._channel
        moved = self._feed()
        if channel.recv_ready():
            self.stdout += channel.recv(_CHUNK_BYTES)[: MAX_OUTPUT_BYTES - len(self.stdout)]
            moved = True
        if channel.recv_stderr_ready():
            self.stderr += channel.recv_stderr(_CHUNK_BYTES)[: MAX_OUTPUT_BYTES - len(self.stderr)]
            moved = True
        return moved

    def _feed(self) -> bool:
        if self.is_fed or not (self._channel.send_ready() or self._channel.closed):
            return False
        try:
            count = self._channel.send(self._unsent[:_CHUNK_BYTES].tobytes()) if self._unsent else 0
            self._unsent = self._unsent[count:]
            if not self._unsent:
                self._channel.shutdown_write()
                self.is_fed = True
        except LOST:  # it ended without reading its script to the end
            self.is_fed = True
        return True
