"""One server for one launch: started, ready, proven to be ours, always stopped."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from launchers.base import Launcher, LaunchSpec, ServerHandle, StopReport
from launchers.clock import Clock
from launchers.errors import HostDirty, HostLost, StartFailed, StopFailed
from sweeper.engines.base import Engine
from sweeper.errors import FailureKind, SweepInterrupted, TrialError
from sweeper.http import ExchangeError, answers, get_json
from sweeper.launch_log import LaunchLog
from sweeper.records import PhaseTime
from sweeper.spec import FlagValue, LimitsSpec

OnPhase = Callable[[str], None]

_POLL_S = 0.2
_PAGE_TIMEOUT_S = 5.0
_DEATH_WAIT_S = 2.0  # a dying server resets its connections before it is gone (a core dump takes a while)


@dataclass
class LaunchTrace:
    """What is known of a launch, filled as it happens, so that a failure keeps its evidence.

    `log` is what `reading` has kept so far of the server's log.
    """

    handle: ServerHandle | None = None
    phases: list[PhaseTime] = field(default_factory=list)
    log: bytes = b""
    effective: dict[str, FlagValue] = field(default_factory=dict)
    stop: StopReport | None = None
    reading: LaunchLog = field(default_factory=LaunchLog)


@dataclass(frozen=True)
class ServerRig:
    """What starting and stopping takes. `shielded` holds interruptions back while it is open."""

    engine: Engine
    launcher: Launcher
    clock: Clock
    limits: LimitsSpec
    model_path: str
    shielded: Callable[[], AbstractContextManager[None]] = nullcontext


def new_nonce() -> str:
    """A fresh word for one launch, which its server must repeat."""
    return secrets.token_hex(8)


def pick_port(launcher: Launcher) -> int:
    """The port of the next server. Raises TrialError(HOST_DIRTY) or (HOST_LOST)."""
    with _host_errors():
        return launcher.free_port()


@contextmanager
def running_server(spec: LaunchSpec, rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> Iterator[str]:
    """A server that is ready and ours, as its base address; stopped in the end whatever happens.

    Raises TrialError with the cause: the body's own BENCHMARK_FAILED or SERVER_HANG becomes what the log shows
    if the server has died. StopFailed passes, in place of any other error (which stays its context): the sweep
    must end. So does SweepInterrupted, once the server is stopped.
    """
    try:
        with _timed("start", rig, trace):
            _start(spec, rig, trace)
            url = _wait_until_ready(rig, trace, on_phase)
            _require_ours(url, spec, rig, trace)
        with _death_explained(rig, trace):
            yield url
    finally:
        if trace.handle is not None:
            _stop_surely(rig, trace, on_phase)


def _start(spec: LaunchSpec, rig: ServerRig, trace: LaunchTrace) -> None:
    """Start the process. The shield keeps an interruption from losing the handle of what was just started."""
    with _host_errors(), rig.shielded():
        trace.handle = rig.launcher.start(spec)


def _wait_until_ready(rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> str:
    """The server's address once it says that it is healthy. Raises TrialError when it dies or takes too long."""
    handle = _handle(trace)
    deadline_s = rig.clock.monotonic_s() + rig.limits.start_s
    phase = ""
    with _host_errors():
        url = rig.launcher.url(handle)
        while True:
            alive = rig.launcher.is_alive(handle)
            _read_log(rig, trace)
            if not alive:
                raise _death(rig, trace, "during its start")
            if (now := rig.engine.readiness(trace.reading.text())) != phase:
                phase = now
                on_phase(phase)
            if answers(url + rig.engine.health_path, _PAGE_TIMEOUT_S):
                return url
            if rig.clock.monotonic_s() >= deadline_s:
                raise TrialError(
                    FailureKind.START_TIMEOUT,
                    f"the server was not ready within {rig.limits.start_s:g} s; its log shows: {phase}",
                    trace.reading.last_lines(),
                )
            rig.clock.sleep(_POLL_S)


def _require_ours(url: str, spec: LaunchSpec, rig: ServerRig, trace: LaunchTrace) -> None:
    """Check who answers and keep what it reports of itself. Raises TrialError: WRONG_SERVER, UNSUPPORTED, ..."""
    handle = _handle(trace)
    with _host_errors():
        try:
            info = get_json(url + rig.engine.info_path, _PAGE_TIMEOUT_S)
            identity = rig.engine.identity(info)
        except (ExchangeError, ValueError) as error:
            if _has_died(rig, trace, _DEATH_WAIT_S):
                raise _death(rig, trace, "right after its start") from error
            raise TrialError(FailureKind.WRONG_SERVER, f"who answers at {url} cannot be told: {error}") from error
        for what, wanted, found in (
            ("nonce", spec.nonce, identity.nonce),
            ("model", rig.model_path, identity.model_path),
        ):
            if wanted != found:
                message = f"another server answers at {url}: its {what} is {found[:200]!r}, not {wanted!r}"
                raise TrialError(FailureKind.WRONG_SERVER, message)
        if not rig.launcher.owns_port(handle):
            message = f"port {handle.port} is not held by the server that was started ({handle.server_id})"
            raise TrialError(FailureKind.WRONG_SERVER, message)
        trace.effective = rig.engine.effective(info)
        _read_log(rig, trace)
    # Some servers come up without what was asked of them: only the log says so.
    shown = rig.engine.diagnose(trace.reading.text(), None)
    if shown is not None and shown.kind is FailureKind.UNSUPPORTED:
        raise TrialError(shown.kind, shown.message, shown.evidence)


@contextmanager
def _death_explained(rig: ServerRig, trace: LaunchTrace) -> Iterator[None]:
    """While open: a failed benchmark whose server has died is the server's failure."""
    try:
        yield
    except TrialError as error:
        if error.kind not in (FailureKind.BENCHMARK_FAILED, FailureKind.SERVER_HANG):
            raise
        with _host_errors():
            if _has_died(rig, trace, _DEATH_WAIT_S):
                raise _death(rig, trace, f"during the benchmark ({error})") from error
        raise


def _has_died(rig: ServerRig, trace: LaunchTrace, wait_s: float) -> bool:
    """Whether the server is gone, or goes within `wait_s` seconds. Raises HostLost."""
    deadline_s = rig.clock.monotonic_s() + wait_s
    while rig.launcher.is_alive(_handle(trace)):
        if rig.clock.monotonic_s() >= deadline_s:
            return False
        rig.clock.sleep(_POLL_S)
    return True


def _death(rig: ServerRig, trace: LaunchTrace, when: str) -> TrialError:
    """Why the server is gone, as its log and exit code show it. Raises HostLost."""
    _read_log(rig, trace)
    code = rig.launcher.exit_code(_handle(trace))
    found = rig.engine.diagnose(trace.reading.text(), code)
    ending = f"the server ended {when}, exit code {'unknown' if code is None else code}"
    if found is None:
        return TrialError(FailureKind.SERVER_CRASH, ending, trace.reading.last_lines())
    return TrialError(found.kind, f"{found.message}: {ending}", (*found.evidence, *trace.reading.last_lines()))


def _stop_surely(rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> None:
    """Stop the server even if an interruption arrives before the shield is up. Raises StopFailed."""
    try:
        with rig.shielded():
            try:
                on_phase("stopping")
            finally:
                _stop(rig, trace)
    except SweepInterrupted:
        if trace.stop is None:
            with rig.shielded():
                _stop(rig, trace)
        raise


def _stop(rig: ServerRig, trace: LaunchTrace) -> None:
    """Stop the server and keep the rest of its log. Raises StopFailed, also when it cannot be told."""
    handle, grace_s = _handle(trace), rig.limits.stop_grace_s
    try:
        with _timed("stop", rig, trace):
            try:
                trace.stop = rig.launcher.stop(handle, grace_s)
            except HostLost:  # once more: on a busy host an answer may come late
                trace.stop = rig.launcher.stop(handle, grace_s)
    except HostLost as error:
        raise StopFailed(f"whether server {handle.server_id} is gone cannot be told: {error}") from error
    finally:
        with suppress(HostLost):
            _read_log(rig, trace)


@contextmanager
def _timed(phase: str, rig: ServerRig, trace: LaunchTrace) -> Iterator[None]:
    """Note how long a phase took, also when it failed."""
    began_s = rig.clock.monotonic_s()
    try:
        yield
    finally:
        trace.phases.append(PhaseTime(name=phase, duration_s=rig.clock.monotonic_s() - began_s))


@contextmanager
def _host_errors() -> Iterator[None]:
    """While open: what a launcher raises is a TrialError of the matching kind. StopFailed passes."""
    try:
        yield
    except HostDirty as error:
        raise TrialError(FailureKind.HOST_DIRTY, str(error), error.holders) from error
    except HostLost as error:
        raise TrialError(FailureKind.HOST_LOST, str(error)) from error
    except StartFailed as error:
        raise TrialError(FailureKind.SERVER_CRASH, f"the server could not be started: {error}") from error


def _read_log(rig: ServerRig, trace: LaunchTrace) -> None:
    trace.reading.read_on(rig.launcher, _handle(trace))
    trace.log = trace.reading.content()


def _handle(trace: LaunchTrace) -> ServerHandle:
    assert trace.handle is not None  # set by _start, before anything else looks
    return trace.handle
