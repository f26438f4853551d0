"""One authenticated SSH connection, through jump hosts if need be, whose death is noticed within 15 seconds."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import paramiko

from launchers.errors import HostLost
from launchers.ssh_auth import Secrets, log_in
from launchers.ssh_config import Hop, SshTarget, route
from launchers.ssh_hostkeys import check_host_key, known_keys, prefer_known
from launchers.ssh_pulse import Pulse, reach

# paramiko writes a traceback to the log for every host that is down; what matters is in the errors raised here.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)

_LOGIN_TIMEOUT_S = 30.0  # a host may look up names, or ask a directory, before it answers


@dataclass(frozen=True)
class Pace:
    """How often things are looked at, in seconds. `num_silent_ticks` ticks without a byte mean a dead link.

    paramiko's own keepalive expects no answer: it noticed nothing in 45 s on a half-open link. So we ask the
    sshd at the far end, past all jump hosts, for an answer every `ping_s`, and count ticks (not time: after this
    machine slept, one tick has passed, not a night). The lock on the host wants a beat every `beat_s`; after
    `num_silent_naps` naps of `nap_s` without one it is given up.
    """

    ping_s: float = 3.0
    tick_s: float = 1.0
    num_silent_ticks: int = 10
    beat_s: float = 15.0
    nap_s: float = 15.0
    num_silent_naps: int = 8
    first_patience_s: float = 3.0


class Link:
    """An open connection. `watch` starts the threads that notice its end; `close` ends it, any number of times."""

    def __init__(self, name: str, transport: paramiko.Transport, pulse: Pulse, ends: contextlib.ExitStack) -> None:
        self.name = name
        self.transport = transport
        self._pulse = pulse
        self._ends = ends
        self._is_dead = threading.Event()
        self._closing = threading.Lock()

    def is_alive(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return not self._is_dead.is_set() and self.transport.is_active() and self.transport.is_alive()

    def survived(self) -> bool:
        """Whether it lives on after something ended on it: gives paramiko's thread the time to find out."""
        self.transport.join(0.5)
        return self.is_alive()

    def watch(self, pace: Pace, on_death: Callable[[Link], None]) -> None:
        """Close the link when it is dead, then call `on_death` once, from a thread; also after `close`."""
        threading.Thread(target=self._ping, args=(pace,), name=f"{self.name}: ping", daemon=True).start()
        watch = threading.Thread(
            target=self._watch, args=(pace, on_death), name=f"{self.name}: watch", daemon=True
        )
        watch.start()

    def close(self) -> None:
        """Close the connection and those to its jump hosts. Whatever waits on a channel of it returns."""
        self._is_dead.set()
        with self._closing:
            self._ends.close()

    def _ping(self, pace: Pace) -> None:
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):  # then it is dead: `_watch` sees that
            while not self._is_dead.wait(pace.ping_s):
                self.transport.global_request("keepalive@openssh.com", wait=True)

    def _watch(self, pace: Pace, on_death: Callable[[Link], None]) -> None:
        num_silent, seen = 0, -1
        while num_silent < pace.num_silent_ticks:
            self.transport.join(pace.tick_s)
            if not self.transport.is_alive() or self._is_dead.is_set():
                break
            count = self._pulse.num_bytes
            num_silent = num_silent + 1 if count == seen else 0
            seen = count
        self.close()
        on_death(self)


STAGES = ("reached", "host key", "login")
"""What each hop takes, in this order."""


def open_link(target: SshTarget, name: str, passed: Callable[[str, Hop], None] = lambda stage, hop: None) -> Link:
    """Connect and log in at every hop. The caller closes the link. `passed` is told each of STAGES that went well.

    Raises SshRefused for what a person must mend, HostLost when the host could not be reached this time.
    """
    with contextlib.ExitStack() as ends:
        transport: paramiko.Transport | None = None
        hops = route(target)
        for number, hop in enumerate(hops, 1):
            pulse = reach(hop, transport, target.connect_timeout_s)
            ends.callback(pulse.close)
            passed("reached", hop)
            is_last = number == len(hops)
            secrets = Secrets(target.password_env, target.passphrase_env, may_use_password=is_last)
            transport = _shake_hands(hop, pulse, ends, target.connect_timeout_s)
            passed("host key", hop)
            log_in(transport, hop, secrets)
            passed("login", hop)
        if transport is None:
            raise HostLost(f"{name}: no way leads to {target.destination}")
        return Link(name, transport, pulse, ends.pop_all())
    raise AssertionError("an ExitStack that holds callbacks swallows nothing")


def _shake_hands(hop: Hop, pulse: Pulse, ends: contextlib.ExitStack, timeout_s: float) -> paramiko.Transport:
    """Agree on encryption and check the host's key. `ends` closes the transport. Raises HostLost, SshRefused."""
    known = known_keys(hop)
    try:
        transport = paramiko.Transport(cast(socket.socket, pulse))
        ends.callback(transport.close)
        transport.banner_timeout = transport.handshake_timeout = timeout_s
        transport.auth_timeout = _LOGIN_TIMEOUT_S
        prefer_known(transport, known)
        transport.start_client(timeout=timeout_s)
        offered = transport.get_remote_server_key()
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise HostLost(
            f"{hop}: what answers there did not agree on SSH: {error or type(error).__name__}"
        ) from error
    check_host_key(hop, offered, known)
    return transport
