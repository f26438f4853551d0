"""The way to one host over time: at most one connection, made anew when it broke; the lock is taken again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import paramiko

from launchers.clock import Clock
from launchers.errors import HostLost, LauncherError, LinkLost, SshRefused
from launchers.ssh_config import SshTarget
from launchers.ssh_link import Link, Pace, open_link
from launchers.ssh_lock import HostLock
from launchers.ssh_script import LOST

SESSION_TIMEOUT_S = 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 15.0
_MAX_RENEWALS = 5


class Line:
    """Gives a living connection to whoever asks; threads may share it.

    A connection that broke is made anew at once, in the background, and by whoever asks for one.
    """

    def __init__(self, target: SshTarget, name: str, pace: Pace, clock: Clock) -> None:
        self.name = name
        self.lock: HostLock | None = None  # taken on every connection from now on
        self.num_breaks = 0
        self._target = target
        self._pace = pace
        self._clock = clock
        self._connecting = threading.Lock()
        self._guard = threading.Lock()  # of the fields below and of `num_breaks`; never held while waiting
        self._link: Link | None = None
        self._is_broken = False
        self._closing = threading.Event()

    def current(self) -> Link | None:
        """The connection if there is a living one; does not wait."""
        link = self._link
        return link if link is not None and link.is_alive() else None

    def live(self) -> Link:
        """A connection that holds the lock: the one there is, or a new one.

        Waits up to `target.reconnect_s` for one that broke, and a few seconds for the very first. Raises
        SshRefused (no retry can mend it), HostLost, or HostBusy when the lock is somebody else's now.
        """
        return self._live(self._closing)

    def session(self, live: Callable[[], Link]) -> tuple[Link, paramiko.Channel]:
        """A session channel of the connection that `live` gives; waits when the host has too many of them.

        Nothing has run on the host yet, so it can be tried again. Raises what `live` raises, and HostLost.
        """
        deadline_s = self._clock.monotonic_s() + SESSION_TIMEOUT_S
        num_renewals, pause_s = 0, 0.02
        while True:
            link = live()
            try:
                return link, link.transport.open_session(timeout=SESSION_TIMEOUT_S)
            except LOST as error:
                if link.is_alive():  # refused: MaxSessions, most likely
                    if self._clock.monotonic_s() > deadline_s:
                        raise HostLost(f"{self.name}: sshd opens no session (MaxSessions?): {error}") from error
                    self._clock.sleep(pause_s)
                    pause_s = min(2 * pause_s, 0.5)
                    continue
                self.note_break(link)
                num_renewals += 1
                if num_renewals > _MAX_RENEWALS:
                    raise LinkLost(f"{self.name}: the connection breaks again and again: {error}") from error

    def note_break(self, link: Link) -> None:
        """Close a connection that broke, and count it, unless it is counted already or was closed on purpose."""
        with self._guard:
            if self._link is link:
                self._link = None
                self.num_breaks += 1
                self._is_broken = True
        link.close()

    def close(self) -> None:
        """Close the connection on purpose, and stop making a new one; a later `live` begins anew."""
        with self._guard:
            self._closing.set()
            self._closing = threading.Event()
            link, self._link = self._link, None
            self._is_broken = False
        if link is not None:
            link.close()

    def _live(self, closing: threading.Event) -> Link:
        link = self._link
        if link is not None and not link.is_alive():
            self.note_break(link)
        patience_s = self._target.reconnect_s if self._is_broken else self._pace.first_patience_s
        deadline_s = self._clock.monotonic_s() + patience_s
        if not self._connecting.acquire(timeout=patience_s + self._target.connect_timeout_s):
            raise HostLost(f"{self.name}: no connection within {patience_s:g} s")
        try:
            while True:
                link = self.current() or self._connect(closing, deadline_s)
                try:
                    self._take_lock(link)
                    return link
                except LinkLost:
                    self.note_break(link)
                    if self._clock.monotonic_s() > deadline_s:
                        raise
        finally:
            self._connecting.release()

    def _connect(self, closing: threading.Event, deadline_s: float) -> Link:
        """Try until `deadline_s`, at least once. Raises SshRefused at once, HostLost in the end."""
        pause_s, link = _FIRST_PAUSE_S, None
        while link is None:
            try:
                link = open_link(self._target, self.name)
            except SshRefused:
                raise
            except HostLost as error:
                if self._clock.monotonic_s() + pause_s > deadline_s:
                    raise HostLost(f"{self.name}: {error}") from error
                if closing.wait(pause_s):
                    raise HostLost(f"{self.name}: closed before there was a connection") from error
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        with self._guard:
            is_wanted = not closing.is_set()
            if is_wanted:
                self._link, self._is_broken = link, False
        if not is_wanted:
            link.close()
            raise HostLost(f"{self.name}: closed while the connection was made")
        link.watch(self._pace, lambda dead: self._mend(dead, closing))
        return link

    def _take_lock(self, link: Link) -> None:
        lock = self.lock
        if lock is None or lock.is_held(link):
            return
        try:
            channel = link.transport.open_session(timeout=SESSION_TIMEOUT_S)
        except LOST as error:
            kind = HostLost if link.survived() else LinkLost
            raise kind(f"{self.name}: the lock was not taken: {error or type(error).__name__}") from error
        lock.take(link, channel)

    def _mend(self, dead: Link, closing: threading.Event) -> None:
        """When a connection has ended: make it anew, and take the lock again, before anybody asks."""
        self.note_break(dead)
        if self._is_broken and not closing.is_set():
            with contextlib.suppress(LauncherError):  # whoever asks next tries again, and is told
                self._live(closing)
