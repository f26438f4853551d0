"""Servers that stand on a host beside a sweep: one of ours left serving, one of somebody else that it replaces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from launchers.base import ServerHandle
from launchers.errors import HostDirty, HostLost, StopFailed
from launchers.host import HostLauncher
from launchers.replies import Reply, ask, expect

_KILL_WAIT_S = 5.0
_POLL_S = 0.5

State = Literal["up", "starting", "dead"]


@dataclass(frozen=True)
class KeptServer:
    """A server of ours that was left serving; `note` is what was said of it then."""

    handle: ServerHandle
    note: str


@dataclass(frozen=True)
class Restored:
    """What became of a server that was started again. `text`: where its output goes, or its last words."""

    state: State
    text: str


class Standing:
    """What stands on the host of `launcher`, which must be held. Every method raises HostLost."""

    def __init__(self, launcher: HostLauncher) -> None:
        self._launcher = launcher
        self.host = launcher.host

    def keep(self, handle: ServerHandle, note: str) -> None:
        """From now on this server of ours is no leftover. `note`: one line. Raises ValueError for more."""
        if not note.isprintable():
            raise ValueError(f"a note is one line, not {note[:60]!r}")
        expect(self._ask("keep", handle.server_id, note), "kept")

    def kept(self) -> tuple[KeptServer, ...]:
        """Servers that were left serving and still run, the newest first."""
        found = []
        for line in expect(self._ask("kept"), "kept").text().splitlines():
            words = line.split(" ", 5)
            if len(words) != 6 or not all(word.isdecimal() for word in (words[1], words[2], words[4])):
                raise HostLost(f"the list of kept servers on {self.host} makes no sense: {line[:200]!r}")
            server_id, pid, start, boot, port, note = words
            handle = ServerHandle(server_id, self.host, int(pid), int(start), boot, int(port), "", server_id)
            found.append(KeptServer(handle, note))
        return tuple(found)

    def replace(self, port: int, grace_s: float) -> str | None:
        """Write down what it takes to start the server on `port` again, on the host alone, then stop it.

        SIGTERM, `grace_s` seconds, SIGKILL. Its command line; None when nobody listens there. Raises HostDirty: it
        could not be started again as it is, and was not touched; or something else started it again at once.
        Raises StopFailed with the survivors.
        """
        grace, patience = (str(round(100 * seconds)) for seconds in (max(0.0, grace_s), _KILL_WAIT_S))
        reply = self._ask("replace", str(port), grace, patience, extra_s=2 * grace_s + 4 * _KILL_WAIT_S)
        if reply.kind == "nobody":
            return None
        where = f"the server on port {port} of {self.host}"
        if reply.kind == "survivors":
            names = tuple(reply.text().splitlines())
            raise StopFailed(f"{where} survived SIGKILL: {'; '.join(names)}", names)
        if reply.kind == "refused":
            raise HostDirty(f"{where} was not stopped: {reply.text()}", (reply.text(),))
        if reply.kind == "revived":
            told = f"{where} was started again at once, by a service manager perhaps: stop it there"
            raise HostDirty(f"{told} ({reply.text()})", (reply.text(),))
        return expect(reply, "replaced").text()

    def pending(self) -> tuple[int, ...]:
        """Ports whose server was replaced and not started again."""
        lines = expect(self._ask("pending"), "pending").text().splitlines()
        return tuple(int(line) for line in lines if line.isdecimal())

    def restore(self, port: int, wait_s: float) -> Restored | None:
        """Start the server that was replaced on `port`, and wait up to `wait_s` seconds until it listens there.

        None when there is none, or it was never stopped. It keeps running whatever is returned but `dead`, and
        what is known of it is deleted once it is up. Raises HostDirty when somebody else listens on its port.
        """
        reply = self._ask("restore", str(port))
        if reply.kind in ("nothing", "running"):
            return None
        if reply.kind == "taken":
            raise HostDirty(f"port {port} of {self.host} is taken by {reply.text()}", (reply.text(),))
        out, clock = expect(reply, "started").text(), self._launcher.clock
        deadline_s = clock.monotonic_s() + wait_s
        while True:
            clock.sleep(_POLL_S)
            word, _, words = expect(self._ask("restored", str(port)), "restored").text().partition(" ")
            state = cast(State, word)
            if state != "starting" or clock.monotonic_s() >= deadline_s:
                return Restored(state, words if state == "dead" else out)

    def _ask(self, verb: str, *arguments: str, extra_s: float = 0.0) -> Reply:
        settings = self._launcher.settings
        timeout_s = settings.answer_timeout_s + extra_s
        return ask(self._launcher.shell, settings.state_dir, verb, arguments, timeout_s)
