"""The launcher that every POSIX host shares: what differs between local and SSH is the `Shell` alone."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, cast

from launchers.base import CommandResult, LaunchSpec, ServerHandle, Shell, StopReport
from launchers.clock import Clock, SystemClock
from launchers.errors import HostDirty, HostLost, StartFailed, StopFailed
from launchers.gpu_sample import GpuSample, GpuSampler
from launchers.gpus import GpuReading, IdleRule, wait_until_idle
from launchers.own_lock import require_own
from launchers.replies import (
    LEADER,
    SERVER_ID,
    Reply,
    ask,
    call_script,
    command_text,
    expect,
    export_lines,
    parse_reply,
)

MAX_LOG_BYTES = 4 * 1024 * 1024
KEPT_FOLDERS = 20
_KILL_WAIT_S = 5.0  # how long the end of what was killed is waited for, and then the port
_START_WAIT_S = 10.0
_SMI_LIMIT_S = 20.0  # without persistence mode nvidia-smi wakes every GPU first: seconds each
_LISTED = re.compile(rf"{SERVER_ID.pattern} \d{{1,9}} \d{{1,18}} (-|[0-9A-Za-z-]{{1,64}}) \d{{1,5}}")
_SAMPLE_LIMIT_S = 10.0  # while a server works they are awake


@dataclass(frozen=True)
class HostSettings:
    """One host. `state_dir` is absolute or begins with `~/` (the host's home); one state folder per host.

    Servers get ports from `port_low` to `port_high` (both included). They are reached at `address`, directly, or,
    when it is empty, the way the shell goes (over SSH: through the connection). A host
    that says nothing for `answer_timeout_s` seconds is lost. Only the GPUs with an index in `gpus` are watched
    (empty: all); one is idle while at most `gpu_idle_mib` MiB of it are used, and gets `gpu_wait_s` seconds to
    become so. Raises ValueError with everything that is wrong.
    """

    name: str
    state_dir: str = "~/.specsweep"
    port_low: int = 30000
    port_high: int = 30099
    address: str = ""
    answer_timeout_s: float = 30.0
    gpus: tuple[int, ...] = ()
    gpu_idle_mib: int = 1024
    gpu_wait_s: float = 60.0

    def __post_init__(self) -> None:
        wrong = []
        if not self.state_dir.startswith(("/", "~/")) or "\0" in self.state_dir:
            wrong.append(f"state_dir {self.state_dir!r} must begin with '/' or '~/' and hold no NUL")
        if not 1 <= self.port_low <= self.port_high <= 65535:
            wrong.append(f"ports {self.port_low} to {self.port_high} are no range within 1 to 65535")
        if self.answer_timeout_s <= 0:
            wrong.append(f"answer_timeout_s {self.answer_timeout_s:g} must be above 0")
        if min(self.gpus, default=0) < 0 or len(set(self.gpus)) < len(self.gpus):
            wrong.append(f"gpus {self.gpus} must be different indices from 0 on")
        if self.gpu_idle_mib < 0 or not self.gpu_wait_s >= 0:
            wrong.append(f"gpu_idle_mib {self.gpu_idle_mib} and gpu_wait_s {self.gpu_wait_s:g} must be at least 0")
        if wrong:
            raise ValueError(f"host {self.name!r}: {'; '.join(wrong)}")


@dataclass(frozen=True)
class ServerStatus:
    """What one look at a server told; `lost` means that it ended without an exit code (killed, or a reboot)."""

    state: Literal["running", "exited", "lost"]
    exit_code: int | None
    log_size_bytes: int


class HostLauncher:
    """Keeps servers alive on one host, by scripts fed to its `shell`; implements `Launcher`.

    Every method raises HostLost when the host gives no sensible answer. `clock`: the machine's own unless given.
    """

    def __init__(self, shell: Shell, settings: HostSettings, clock: Clock | None = None) -> None:
        self.host = settings.name
        self.shell = shell
        self.settings = settings
        self.clock = clock or SystemClock()
        self._sampler = GpuSampler(settings.gpus, settings.gpu_idle_mib)
        self._lock = ""

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Own the host for as long as the context is open. Raises HostBusy."""
        lock = f"{self.settings.state_dir}/host.lock"
        with self.shell.hold(lock):
            self._lock = lock
            try:
                yield
            finally:
                self._lock = ""

    def free_port(self) -> int:
        """The lowest port of the range that nothing listens on, at any address. Raises HostDirty if none is."""
        low, high = self.settings.port_low, self.settings.port_high
        reply = self._ask("port", str(low), str(high))
        if reply.kind == "dirty":
            raise self._dirty(reply, f"port {low}" if low == high else f"every port from {low} to {high}")
        return int(expect(reply, "port").fields(r"(\d{1,5})")[0])

    def start(self, spec: LaunchSpec) -> ServerHandle:
        """Start the server, in the shell's working folder; its id is `spec.nonce`. When it raises, nothing runs.

        Raises HostDirty (the port is taken, the state folder cannot be written: no fault of the server's),
        StartFailed (a bad `spec`, a missing program), or StopFailed (what a failed start left cannot be ended). A
        program that the system refuses to execute (a broken interpreter line) is a server that exits at once with
        code 126 or 127. HostBusy: the lock that `hold` took is another's now.
        """
        if self._lock:
            require_own(self._lock, self.host, self.run)
        commands = command_text(spec)
        try:
            reply = self._ask("start", spec.nonce, str(spec.port), commands, LEADER, extra_s=_START_WAIT_S)
            if reply.kind == "refused":
                raise StartFailed(f"server {spec.nonce} was not started on {self.host}: {reply.text()}")
            if reply.kind == "unwritable":
                raise HostDirty(f"server {spec.nonce} was not started on {self.host}: {reply.text()}")
            if reply.kind not in ("dirty", "used"):
                return self._handle_started(expect(reply, "started"), spec)
        except BaseException as error:
            self._abandon(spec, error)
            raise
        if reply.kind == "used":
            raise StartFailed(f"server {spec.nonce} was not started on {self.host}: its nonce was used before")
        raise self._dirty(reply, f"port {spec.port}")

    def settle(self) -> GpuReading | None:
        """Wait until every watched GPU is idle (`IdleRule`); None where there is no nvidia-smi.

        Raises HostDirty with what holds what after `gpu_wait_s` seconds; at once when nvidia-smi hangs or fails.
        """
        rule = IdleRule(self.settings.gpus, self.settings.gpu_idle_mib, self.settings.gpu_wait_s)
        return wait_until_idle(self._gpu_text, rule, self.host, self.clock)

    def gpu_sample(self, handle: ServerHandle) -> GpuSample | None:
        """One look at the watched GPUs while the server `handle` works; None where there is no nvidia-smi.

        From one thread at a time, which may be another than that of the other methods. A failing nvidia-smi is
        told in the sample; it has 10 s for each of two questions.
        """

        def ask(fields: str) -> str | None:
            words = (str(round(_SAMPLE_LIMIT_S * 100)), str(self.settings.gpu_idle_mib), fields)
            reply = self._ask("sample", *words, *self._identity(handle), extra_s=2 * _SAMPLE_LIMIT_S)
            return None if reply.kind == "nosmi" else expect(reply, "sample").text()

        return self._sampler.take(ask, handle.server_id)

    def num_breaks(self) -> int:
        """How often the way to the host has broken so far."""
        return self.shell.num_breaks()

    def status(self, handle: ServerHandle) -> ServerStatus:
        """State, exit code and log size in one call; also notes the server's processes for a later stop."""
        reply = expect(self._ask("status", *self._identity(handle)), "status")
        state, code, size = reply.fields(r"(running|exited|lost) (-|\d{1,3}) +(\d{1,18})")
        known = cast(Literal["running", "exited", "lost"], state)
        return ServerStatus(known, None if code == "-" else int(code), int(size))

    def is_alive(self, handle: ServerHandle) -> bool:
        """Whether the very process that was started still runs."""
        return self.status(handle).state == "running"

    def exit_code(self, handle: ServerHandle) -> int | None:
        """The server's exit code (128 + n after signal n); None while it runs, or when its leader was killed."""
        return self.status(handle).exit_code

    def owns_port(self, handle: ServerHandle) -> bool:
        """Whether something listens on the handle's port, and only processes of the server do, at any address."""
        return expect(self._ask("owns", *self._identity(handle)), "owns").fields("(yes|no)") == ("yes",)

    def logs(self, handle: ServerHandle, from_byte: int = 0, max_bytes: int = 1_000_000) -> bytes:
        """At most `max_bytes` (and never more than 4 MiB) of the server's output from `from_byte` on."""
        count = min(max(0, max_bytes), MAX_LOG_BYTES)
        server_id = self._identity(handle)[0]
        return expect(self._ask("logs", server_id, str(max(0, from_byte)), str(count)), "logs").body

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        """Run a short command on the host, for its output. Raises HostLost on time-out or above 8 MiB of output.

        `env` is added to its environment, and is in no process list. A missing program gives exit code 127, as in
        a shell. Raises ValueError when there is no program in `argv`, StartFailed for an impossible `env`.
        """
        if not argv or not argv[0] or argv[0].startswith("-"):
            raise ValueError(f"argv {argv[:1]!r} does not begin with a program")
        nonce = secrets.token_hex(8)
        script = export_lines(env or {}) + call_script(nonce, self.settings.state_dir, "run", argv)
        result = self.shell.run(script, timeout_s)
        reply = expect(parse_reply(result.stdout, nonce), "run")
        return CommandResult(reply.code, reply.body, result.stderr)

    def stop(self, handle: ServerHandle, grace_s: float) -> StopReport:
        """SIGTERM to every process of the server, parents first; SIGKILL after `grace_s` s, until none is left.

        Then waits up to 5 s for the port. Stopping what is gone is fine. Raises StopFailed with the survivors.
        """
        return self._stop(self._identity(handle), grace_s)

    def leftovers(self) -> tuple[tuple[str, ...], ...]:
        """Servers recorded in the state folder that still have processes, each as the words that name it.

        The first word is the id, the last one the port. Changes nothing.
        """
        lines = expect(self._ask("list"), "list").text().splitlines()
        for line in lines:
            if not _LISTED.fullmatch(line):
                raise HostLost(f"the list of servers on {self.host} makes no sense: {line[:200]!r}")
        return tuple(tuple(line.split(" ")) for line in lines)

    def stop_leftovers(self, grace_s: float) -> tuple[str, ...]:
        """Stop every server recorded in the state folder that still has processes; their ids.

        Old folders of gone servers are deleted, except the newest 20. Raises StopFailed after trying all.
        """
        stopped: list[str] = []
        survivors: list[str] = []
        for identity in self.leftovers():
            try:
                self._stop(identity, grace_s)
                stopped.append(identity[0])
            except StopFailed as error:
                survivors += error.survivors
        if survivors:
            names = "; ".join(survivors)
            raise StopFailed(f"leftovers on {self.host} survived SIGKILL: {names}", tuple(survivors))
        expect(self._ask("prune", str(KEPT_FOLDERS)), "pruned")
        return tuple(stopped)

    def url(self, handle: ServerHandle) -> str:
        """The base address at which the server is reached over HTTP."""
        address = self.settings.address
        if not address:
            return f"http://{self.shell.address(handle.port)}"
        return f"http://{f'[{address}]' if ':' in address else address}:{handle.port}"

    def _ask(self, verb: str, *arguments: str, extra_s: float = 0.0) -> Reply:
        """Call one verb of supervisor.sh, which may take `extra_s` seconds beyond a quick answer."""
        return ask(self.shell, self.settings.state_dir, verb, arguments, self.settings.answer_timeout_s + extra_s)

    def _gpu_text(self) -> str | None:
        """What nvidia-smi says, as `read_gpus` reads it."""
        reply = self._ask("gpus", str(round(_SMI_LIMIT_S * 100)), extra_s=2 * _SMI_LIMIT_S)
        return None if reply.kind == "nosmi" else expect(reply, "gpus").text()

    def _stop(self, identity: tuple[str, ...], grace_s: float) -> StopReport:
        grace = max(0.0, grace_s)
        # All that supervisor.sh may wait for: four rounds at most, the first two with the grace; then the port.
        extra_s = 2 * grace + 4 * _KILL_WAIT_S + _KILL_WAIT_S + 4 * _SMI_LIMIT_S
        limits = (str(round(grace * 100)), str(round(_KILL_WAIT_S * 100)))
        reply = self._ask("stop", *identity, *limits, extra_s=extra_s)
        if reply.kind == "survivors":
            names = tuple(reply.text().splitlines())
            raise StopFailed(f"server {identity[0]} on {self.host} survived SIGKILL: {'; '.join(names)}", names)
        code, count, hundredths, free, signals = expect(reply, "stopped").fields(
            r"(-|\d{1,3}) (\d{1,9}) (\d{1,12}) (yes|no) ([A-Z ]*)"
        )
        exit_code = None if code == "-" else int(code)
        return StopReport(exit_code, tuple(signals.split()), int(count), int(hundredths) / 100, free == "yes")

    def _abandon(self, spec: LaunchSpec, error: BaseException) -> None:
        """Stop whatever a failed start left; the host also remembers not to start it late."""
        try:
            self._stop((spec.nonce, "0", "0", "-", str(spec.port)), grace_s=0.0)
        except HostLost as lost:
            error.add_note(f"whether a process of {spec.nonce} still runs is unknown: {lost}")

    def _handle_started(self, reply: Reply, spec: LaunchSpec) -> ServerHandle:
        pid, start_time, boot_id, log_path = reply.fields(r"(\d{1,9}) (\d{1,18}) ([0-9a-f-]+)\n(.+)")
        start = int(start_time)
        return ServerHandle(spec.nonce, self.host, int(pid), start, boot_id, spec.port, log_path, spec.nonce)

    def _identity(self, handle: ServerHandle) -> tuple[str, ...]:
        """The words that name a server to supervisor.sh. Raises ValueError for one that cannot be ours."""
        if not SERVER_ID.fullmatch(handle.server_id):
            raise ValueError(f"{handle.server_id!r} is no server id")
        if handle.host != self.host:
            raise ValueError(f"server {handle.server_id} runs on {handle.host!r}, not on {self.host!r}")
        return handle.server_id, str(handle.pid), str(handle.start_time), handle.boot_id, str(handle.port)

    def _dirty(self, reply: Reply, what: str) -> HostDirty:
        holders = tuple(reply.text().splitlines()[:20])
        return HostDirty(f"{what} on {self.host} is taken by {'; '.join(holders)}", holders)
