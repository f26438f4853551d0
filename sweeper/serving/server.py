"""One server for one launch: started on a clean host, ready, proven to be ours, always stopped."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from launchers.base import Launcher, LaunchSpec
from launchers.errors import HostDirty, HostLost, StopFailed
from sweeper.errors import FailureKind, SweepInterrupted, TrialError
from sweeper.http import Target
from sweeper.serving.launch_trace import (
    LaunchTrace,
    OnPhase,
    ServerRig,
    death,
    has_died,
    host_errors,
    memory_of,
    read_log,
    stuck,
    timed,
)
from sweeper.serving.readiness import DEATH_WAIT_S, require_ours, trouble_of, wait_until_ready


def new_nonce() -> str:
    """A fresh word for one launch, which its server must repeat."""
    return secrets.token_hex(8)


def pick_port(launcher: Launcher) -> int:
    """The port of the next server. Raises TrialError(HOST_DIRTY) or (HOST_LOST)."""
    with host_errors():
        return launcher.free_port()


@contextmanager
def running_server(spec: LaunchSpec, rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> Iterator[Target]:
    """A server that is ready and ours, and where it is reached; stopped in the end whatever happens.

    Raises TrialError with the cause: the body's own BENCHMARK_FAILED or SERVER_HANG becomes what the log shows
    if the server has died. StopFailed passes, in place of any other error (which stays its context): the sweep
    must end. So does SweepInterrupted, once the server is stopped.
    """
    try:
        url = _ready(spec, rig, trace, on_phase)
        with _death_explained(rig, trace):
            yield Target(url, trouble_of(rig, trace), _mended_of(rig, trace))
    finally:
        if trace.handle is not None:
            _stop_surely(rig, trace, on_phase)


def left_running(spec: LaunchSpec, rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> None:
    """Start a server that goes on when this returns: ready, and proven to be ours.

    Raises TrialError with the cause, StopFailed and SweepInterrupted; the server is then stopped.
    """
    try:
        _ready(spec, rig, trace, on_phase)
    except BaseException:
        if trace.handle is not None:
            _stop_surely(rig, trace, on_phase)
        raise


def _ready(spec: LaunchSpec, rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> str:
    """Start the server on a clean host, wait until it is ready and ours; its URL. Whoever called stops it."""
    with timed("check", rig, trace):
        _require_clean_host(rig, trace, on_phase)
    with timed("start", rig, trace):
        _start(spec, rig, trace)
        url = wait_until_ready(rig, trace, on_phase)
        require_ours(url, spec.nonce, rig, trace)
    return url


def _require_clean_host(rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> None:
    """Every GPU idle, or TrialError(HOST_DIRTY): a start beside a ghost would be blamed on its configuration."""
    on_phase("checking the host")
    with host_errors():
        trace.gpus_before = rig.launcher.settle() if rig.watch_gpus else None
        trace.prove(gpu_mib_before=memory_of(trace.gpus_before))


def _start(spec: LaunchSpec, rig: ServerRig, trace: LaunchTrace) -> None:
    """Start the process. The shield keeps an interruption from losing the handle of what was just started."""
    with timed("launch", rig, trace), host_errors(), rig.shielded():
        trace.handle = rig.launcher.start(spec)
    trace.prove(port_free_before=True)  # else `start` raises HostDirty


def _mended_of(rig: ServerRig, trace: LaunchTrace) -> Callable[[], bool]:
    """A question for whoever got no answer: did only the way to the host break, and does it stand again?

    Asking the host waits for its return. The server has not noticed anything: the request can be sent again.
    """
    known = [rig.launcher.num_breaks()]

    def mended() -> bool:
        try:
            alive = rig.launcher.is_alive(trace.started)
        except HostLost:
            return False
        known.append(rig.launcher.num_breaks())
        return alive and known[-1] > known[-2]

    return mended


@contextmanager
def _death_explained(rig: ServerRig, trace: LaunchTrace) -> Iterator[None]:
    """While open: a failed benchmark whose server has died, or will never answer, is the server's failure."""
    try:
        yield
    except TrialError as error:
        if error.kind not in (FailureKind.BENCHMARK_FAILED, FailureKind.SERVER_HANG):
            raise
        with host_errors():
            if has_died(rig, trace, DEATH_WAIT_S):
                raise death(rig, trace, f"during the benchmark ({error})") from error
            read_log(rig, trace)
        if sign := rig.engine.fatal_sign(trace.log.text()):
            raise stuck(rig, trace, sign) from error
        raise


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
    """Stop the server, keep the rest of its log and the proof. Raises StopFailed, also when it cannot be told."""
    with timed("stop", rig, trace):
        try:
            try:
                trace.stop = rig.launcher.stop(trace.started, rig.limits.stop_grace_s)
            except HostLost:  # once more: on a busy host an answer may come late
                trace.stop = rig.launcher.stop(trace.started, rig.limits.stop_grace_s)
        except HostLost as error:
            server_id = trace.started.server_id
            raise StopFailed(f"whether server {server_id} is gone cannot be told: {error}") from error
        finally:
            with suppress(HostLost):
                read_log(rig, trace)
        _prove_stop(rig, trace)


def _prove_stop(rig: ServerRig, trace: LaunchTrace) -> None:
    """Note what the stop took, and whether the GPUs are idle again: if not, it is the next launch that fails."""
    if (stop := trace.stop) is None:
        return
    trace.prove(
        stop_signals=stop.signals,
        num_stopped=stop.num_processes,
        exit_code=stop.exit_code,
        port_free_after=stop.port_free,
    )
    try:
        trace.prove(gpu_mib_after=memory_of(rig.launcher.settle() if rig.watch_gpus else None))
    except (HostDirty, HostLost) as error:
        trace.prove(not_clean_after=str(error)[:1000])
