"""Holds a lock on the host through one channel, and takes it anew after the connection broke."""

from __future__ import annotations

import contextlib
import secrets

import paramiko

from launchers.clock import Clock
from launchers.errors import HostBusy, HostLost, LinkLost
from launchers.replies import Reply, parse_reply, quote
from launchers.shell import lock_holder
from launchers.ssh_link import Link, Pace
from launchers.ssh_script import LOST, REMOTE, shut, start_shell

_ANSWER_TIMEOUT_S = 30.0
_MAX_ANSWER_BYTES = 100_000


class HostLock:
    """The lock `path` of a host, held by a shell there (`hold_lock` in ssh.sh) for as long as its channel is open.

    The shell uses flock(2) on the file, as LocalShell does: the two exclude each other. When this process dies, or
    beats no more, the lock is free again.
    """

    def __init__(self, name: str, path: str, pace: Pace, clock: Clock) -> None:
        self.name = name
        self.path = path
        self.holder = lock_holder(clock)
        self._pace = pace
        self._clock = clock
        self._tokens: list[str] = []  # of every shell that may hold it for us
        self._link: Link | None = None
        self._channel: paramiko.Channel | None = None

    def is_held(self, link: Link) -> bool:
        """Whether the shell that holds it still answers for this very connection."""
        channel = self._channel
        return self._link is link and channel is not None and not (channel.closed or channel.eof_received)

    def take(self, link: Link, channel: paramiko.Channel) -> None:
        """Hold the lock through `channel`, a new session of `link`; closed by `release`, or here on any error.

        A shell of ours that holds it on an earlier connection is ended first. Raises HostBusy, LinkLost, HostLost.
        """
        nonce, token = secrets.token_hex(8), f"specsweep-{secrets.token_hex(8)}"
        naps = (f"{self._pace.nap_s:g}", str(self._pace.num_silent_naps))
        words = " ".join(quote(word) for word in (nonce, self.path, self.holder, " ".join(self._tokens), *naps))
        self._tokens.append(token)  # also when this fails: the shell may have the lock without our knowing
        with contextlib.ExitStack() as unless_held:
            unless_held.callback(shut, channel)
            try:
                start_shell(channel, token, _ANSWER_TIMEOUT_S)
                channel.sendall(f"{REMOTE}\n{{ hold_lock {words}; exit; }}\n".encode("utf-8", "surrogateescape"))
                reply = self._answer(channel, nonce)
            except (HostLost, *LOST) as error:
                what = f"{self.name}: the lock {self.path!r} was not taken: {error or type(error).__name__}"
                raise (HostLost if link.survived() else LinkLost)(what) from error
            if reply.kind != "held":
                self._refused(reply)
            self._tokens = [token]  # all others have ended
            self._link, self._channel = link, channel
            unless_held.pop_all()

    def beat(self) -> None:
        """Tell the host that we are still here."""
        if (channel := self._channel) is not None:
            with contextlib.suppress(*LOST):  # whoever uses the connection next sees that it is gone
                channel.send(b"\n")

    def release(self) -> None:
        """Free the lock, and wait until it is free (5 s at most: without a connection nobody can tell)."""
        channel, self._channel = self._channel, None
        if channel is None:
            return
        with contextlib.suppress(*LOST):
            channel.shutdown_write()
            channel.status_event.wait(5)
        shut(channel)

    def _answer(self, channel: paramiko.Channel, nonce: str) -> Reply:
        deadline_s = self._clock.monotonic_s() + _ANSWER_TIMEOUT_S
        end = f"\n@specsweep {nonce} end 0\n".encode()
        answer = b""
        while end not in answer and len(answer) < _MAX_ANSWER_BYTES:
            channel.settimeout(max(0.1, deadline_s - self._clock.monotonic_s()))
            piece = channel.recv(4096)
            if not piece and (channel.closed or channel.eof_received):
                break
            answer += piece
        if not answer and channel.closed:
            raise EOFError("the channel was closed")
        return parse_reply(answer, nonce)

    def _refused(self, reply: Reply) -> None:
        if reply.kind == "busy":
            holder = " ".join(reply.text().split())
            raise HostBusy(f"{self.name} is held by another specsweep: {holder or 'unknown'}", holder)
        raise HostLost(f"{self.name}: the lock {self.path!r} cannot be opened: {reply.text()}")
