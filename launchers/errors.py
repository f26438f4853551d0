"""What can go wrong on a host.

LauncherError
├── HostLost      the host did not answer, or its answer could not be understood: nothing is known
│   ├── LinkLost  the connection broke while a script ran on the host: it may have run to its end or not
│   └── SshRefused  no connection, and no retry can mend it: a key, a password, a host key, the configuration
├── HostBusy      another specsweep process holds the host
├── HostDirty     something of the host stands in the way of a launch (a port, GPU memory, a full disk)
├── StartFailed   the server's process could not be started at all
└── StopFailed    processes of the server survived SIGKILL: the sweep must end
"""

from __future__ import annotations


class LauncherError(Exception):
    """Base of everything a launcher raises on purpose."""


class HostLost(LauncherError):
    """The host did not answer in time, or answered nonsense. "I could not tell" is not "no".

    `fix`: what a person can do about it, also the end of the message; empty when that is not known.
    """

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(f"{reason}{fix and '. '}{fix}")
        self.reason = reason
        self.fix = fix


class LinkLost(HostLost):
    """The connection broke while a script ran. Asking again is fine where running it twice is."""


class SshRefused(HostLost):
    """A person has to mend this: a login or a host key that is not accepted, a configuration that is wrong."""


class HostBusy(LauncherError):
    """Another specsweep process holds this host's lock. `holder` says who, as far as it is known."""

    def __init__(self, message: str, holder: str = "") -> None:
        super().__init__(message)
        self.holder = holder


class HostDirty(LauncherError):
    """A launch was refused because of the host: what is not ours, or no room. `holders` says what."""

    def __init__(self, message: str, holders: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.holders = holders


class StartFailed(LauncherError):
    """The server's process could not be started (the program is missing, ...)."""


class StopFailed(LauncherError):
    """Processes of the server were still alive after SIGKILL. `survivors` names them."""

    def __init__(self, message: str, survivors: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.survivors = survivors
