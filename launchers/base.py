"""The data and the protocols that every kind of host shares."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from launchers.gpu_sample import GpuSample
from launchers.gpus import GpuReading


@dataclass(frozen=True)
class CommandResult:
    """How a finished command ended; `exit_code` is the shell's own (128 + n after signal n)."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class LaunchSpec:
    """One server to start: an argument list (never a joined string), its environment and its port.

    `env` is added to the host's own environment. Names in `unset_env` are removed from it. `nonce`
    is a fresh random word that the engine also makes the server repeat, so that its answers can be
    told from those of any other server. `others`: the further nodes of a server that spans several hosts,
    in the order of their ranks.
    """

    argv: tuple[str, ...]
    port: int
    nonce: str
    env: Mapping[str, str] = field(default_factory=dict)
    unset_env: tuple[str, ...] = ()
    others: tuple[LaunchSpec, ...] = ()


@dataclass(frozen=True)
class ServerHandle:
    """Plain data that names one started server, so that a later process can adopt or stop it.

    `pid` leads the server's own session; with `start_time` (clock ticks since boot, field 22 of
    /proc/PID/stat) and `boot_id` it cannot be mistaken for a process that reuses the number.
    """

    server_id: str
    host: str
    pid: int
    start_time: int
    boot_id: str
    port: int
    log_path: str
    nonce: str
    others: tuple[ServerHandle, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The handle as JSON-ready data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ServerHandle:
        """The handle that `to_dict` wrote. Raises TypeError when a field is missing or unknown."""
        return cls(**{**data, "others": tuple(cls.from_dict(other) for other in data.get("others", ()))})


@dataclass(frozen=True)
class StopReport:
    """Proof of a stop: what it took. `port_free` is read from the host after the last process ended."""

    exit_code: int | None
    signals: tuple[str, ...]
    num_processes: int
    duration_s: float
    port_free: bool


class Shell(Protocol):
    """Runs POSIX shell scripts on one host. Local and SSH differ only here."""

    name: str

    def run(self, script: str, timeout_s: float) -> CommandResult:
        """Feed `script` to /bin/sh on the host and wait for its end.

        Raises HostLost when the host cannot be reached or the script outlives `timeout_s` seconds
        (the script's processes are then killed).
        """

    def hold(self, lock_path: str) -> AbstractContextManager[None]:
        """Hold the lock file `lock_path` on the host while the context is open.

        The lock ends with this process, however it ends. Raises HostBusy when another process holds it.
        Whatever connection the shell has is closed in the end.
        """

    def address(self, port: int) -> str:
        """HOST:PORT at which this process reaches what listens on `port` of the host's own loopback address.

        It stays the same when the way to the host breaks and is mended. Raises HostLost.
        """

    def num_breaks(self) -> int:
        """How often the way to the host has broken so far; always 0 on this machine."""


class GpuSource(Protocol):
    """Where a server's GPUs can be looked at while it works."""

    def gpu_sample(self, handle: ServerHandle) -> GpuSample | None:
        """One look at the watched GPUs; None where there is no nvidia-smi. Bounded in time; raises HostLost.

        It may be called from another thread than the rest, by one at a time. What nvidia-smi does not tell is
        None in the sample, and why it failed is told there.
        """


class Launcher(GpuSource, Protocol):
    """Keeps one server alive on one host."""

    host: str

    def hold(self) -> AbstractContextManager[None]:
        """Own the host for as long as the context is open. Raises HostBusy."""

    def free_port(self) -> int:
        """The port to use for the next server. Raises HostDirty when the wanted port is taken."""

    def settle(self) -> GpuReading | None:
        """Wait until the memory of every GPU is back at its idle level; None where there is no nvidia-smi.

        Raises HostDirty, with what holds what, when the wait has an end before that; HostLost.
        """

    def num_breaks(self) -> int:
        """How often the way to the host has broken so far."""

    def start(self, spec: LaunchSpec) -> ServerHandle:
        """Start the server in a session of its own; it outlives this process.

        Raises HostDirty (the port is taken, no room), StartFailed or HostLost. Whoever called stops it.
        """

    def is_alive(self, handle: ServerHandle) -> bool:
        """Whether the very process that was started still runs. Raises HostLost when that is unknown."""

    def exit_code(self, handle: ServerHandle) -> int | None:
        """The server's exit code, from the file its supervisor wrote; None while it runs or was killed."""

    def owns_port(self, handle: ServerHandle) -> bool:
        """Whether the socket listening on the handle's port belongs to the handle's processes."""

    def logs(self, handle: ServerHandle, from_byte: int = 0, max_bytes: int = 1_000_000) -> bytes:
        """At most `max_bytes` of the server's output from `from_byte` on."""

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        """Run a short command on the host, with `env` added, for its output. Raises HostLost on time-out."""

    def stop(self, handle: ServerHandle, grace_s: float) -> StopReport:
        """SIGTERM, wait `grace_s` seconds, SIGKILL, verify. Gone on return; else raises StopFailed."""

    def stop_leftovers(self, grace_s: float) -> tuple[str, ...]:
        """Stop every server that our own pid records prove is ours; their ids. Raises StopFailed."""

    def url(self, handle: ServerHandle) -> str:
        """The base address at which this process reaches the server over HTTP."""
