"""One bounded program on the host, started and stopped as a server is: it leaves nothing behind, whatever happens.

It has a pid record and a marker like a server's; so `stop_leftovers` finds it after the death of this process, and
a stop is proved.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from launchers.base import LaunchSpec, ServerHandle
from launchers.errors import HostLost, StopFailed
from sweeper.errors import SweepInterrupted
from sweeper.serving.launch_trace import ServerRig
from sweeper.text import plain

MAX_OUTPUT_BYTES = 2_000_000

_POLL_S = 0.25
_MAX_REASON = 200


@dataclass(frozen=True)
class Ending:
    """How a program ended. `output`: the beginning of what it printed. `exit_code`: None when it was killed."""

    output: str
    exit_code: int | None
    hung: bool
    took_s: float

    @property
    def failure(self) -> str:
        """Why it is of no use; empty when it ended well."""
        if self.hung:
            return f"hung: it had not ended after {self.took_s:.0f} s"
        if self.exit_code == 0:
            return ""
        lines = [line for line in map(plain, self.output.splitlines()) if line]
        last = lines[-1][:_MAX_REASON] if lines else "it printed nothing"
        return f"died: {last} (exit code {'unknown' if self.exit_code is None else self.exit_code})"


@dataclass
class _Started:
    """The handle, once there is one."""

    handle: ServerHandle | None = None


def run_bounded(spec: LaunchSpec, rig: ServerRig, timeout_s: float) -> Ending:
    """Run a program to its end, or for `timeout_s` seconds; gone on return, also when it raises.

    Raises HostDirty (the port is taken), StartFailed, HostLost; StopFailed when it cannot be ended, or when nobody
    can tell; SweepInterrupted, once it is stopped.
    """
    started = _Started()
    began_s = rig.clock.monotonic_s()
    try:
        with rig.shielded():
            started.handle = rig.launcher.start(spec)
        hung = not _ends(started.handle, rig, began_s + timeout_s)
        took_s = rig.clock.monotonic_s() - began_s
        code = None if hung else rig.launcher.exit_code(started.handle)
        output = rig.launcher.logs(started.handle, 0, MAX_OUTPUT_BYTES).decode("utf-8", "replace")
        return Ending(output, code, hung, took_s)
    finally:
        if started.handle is not None:
            _stop_surely(started.handle, rig)


def _ends(handle: ServerHandle, rig: ServerRig, deadline_s: float) -> bool:
    """Whether it ends before the deadline."""
    while rig.launcher.is_alive(handle):
        if rig.clock.monotonic_s() >= deadline_s:
            return False
        rig.clock.sleep(_POLL_S)
    return True


def _stop_surely(handle: ServerHandle, rig: ServerRig) -> None:
    """Stop what is left of it, even if an interruption arrives before the shield is up. Raises StopFailed."""
    stopped = False
    try:
        with rig.shielded():
            _stop(handle, rig)
            stopped = True
    except SweepInterrupted:
        if not stopped:
            with rig.shielded():
                _stop(handle, rig)
        raise


def _stop(handle: ServerHandle, rig: ServerRig) -> None:
    with suppress(HostLost):
        rig.launcher.stop(handle, rig.limits.stop_grace_s)
        return
    try:  # once more: on a busy host an answer may come late
        rig.launcher.stop(handle, rig.limits.stop_grace_s)
    except HostLost as error:
        raise StopFailed(f"whether {handle.server_id} is gone cannot be told: {error}") from error
