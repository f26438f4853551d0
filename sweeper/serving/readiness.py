"""A started server becomes ready, and proves that it is the one that was started."""

from __future__ import annotations

from collections.abc import Callable

from launchers.errors import HostLost
from sweeper.errors import FailureKind, TrialError
from sweeper.http import ExchangeError, ExchangeTimeout, Target, answers, get_json, send
from sweeper.records import PhaseTime
from sweeper.serving.launch_trace import (
    LaunchTrace,
    OnPhase,
    ServerRig,
    death,
    has_died,
    host_errors,
    read_log,
    stuck,
)

_POLL_S = 0.2
_PAGE_TIMEOUT_S = 25.0  # SGLang's /health generates a token, and gives up by itself after 20 s
DEATH_WAIT_S = 2.0  # a dying server resets its connections before it is gone (a core dump takes a while)


def wait_until_ready(rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> str:
    """The server's address once it says that it is healthy. Raises TrialError when it dies or takes too long."""
    deadline_s = rig.clock.monotonic_s() + rig.limits.start_s
    phases = _Phases(rig, trace, on_phase)
    with host_errors():
        target = Target(rig.launcher.url(trace.started), trouble_of(rig, trace))
        while True:
            alive = rig.launcher.is_alive(trace.started)
            read_log(rig, trace)
            log = trace.log.text()
            if not alive:
                raise death(rig, trace, "during its start")
            if sign := rig.engine.fatal_sign(log):
                raise stuck(rig, trace, sign)
            phases.enter(rig.engine.readiness(log), rig.engine.progress(log))
            if answers(target, rig.engine.health_path, _PAGE_TIMEOUT_S):
                phases.end()
                return target.url
            if rig.clock.monotonic_s() >= deadline_s:
                raise _too_late(rig, trace, phases.name)
            rig.clock.sleep(_POLL_S)


def trouble_of(rig: ServerRig, trace: LaunchTrace) -> Callable[[], str]:
    """A question for whoever waits in vain: why the answer will never come; empty when it may still come.

    It may be asked from another thread, as long as this one only waits.
    """

    def trouble() -> str:
        try:
            if not rig.launcher.is_alive(trace.started):
                return "the server has ended"
            read_log(rig, trace)
        except HostLost:
            return ""  # that nothing is known is no reason to give up
        return rig.engine.fatal_sign(trace.log.text())

    return trouble


class _Phases:
    """The phases of the start that the log shows: timed, and told with how far each has come."""

    def __init__(self, rig: ServerRig, trace: LaunchTrace, on_phase: OnPhase) -> None:
        self._rig, self._trace, self._on_phase = rig, trace, on_phase
        self._began_s = rig.clock.monotonic_s()
        self.name = self._shown = ""

    def enter(self, name: str, progress: str) -> None:
        if name != self.name:
            self.end()
            self.name, self._began_s = name, self._rig.clock.monotonic_s()
        if (shown := f"{name} {progress}".rstrip()) != self._shown:
            self._shown = shown
            self._on_phase(shown)

    def end(self) -> None:
        if self.name:
            spent_s = self._rig.clock.monotonic_s() - self._began_s
            self._trace.phases.append(PhaseTime(name=f"start: {self.name}", duration_s=spent_s))


def _too_late(rig: ServerRig, trace: LaunchTrace, phase: str) -> TrialError:
    """A start that took too long; what its log shows may say why."""
    limit = f"the server was not ready within {rig.limits.start_s:g} s; its log shows: {phase}"
    found = rig.engine.diagnose(trace.log.text(), None)
    if found is None:
        return TrialError(FailureKind.START_TIMEOUT, limit, trace.log.last_lines())
    return TrialError(found.kind, f"{found.message}: {limit}", (*found.evidence, *trace.log.last_lines()))


def require_ours(url: str, nonce: str, rig: ServerRig, trace: LaunchTrace) -> None:
    """Check who answers, that it decodes, and keep what it reports of itself.

    Raises TrialError: WRONG_SERVER, UNSUPPORTED, SERVER_HANG, ...
    """
    with host_errors():
        try:
            info = get_json(Target(url, trouble_of(rig, trace)), rig.engine.info_path, rig.engine.info_timeout_s)
            identity = rig.engine.identity(info)
        except (ExchangeError, ValueError) as error:
            if has_died(rig, trace, DEATH_WAIT_S):
                raise death(rig, trace, "right after its start") from error
            raise TrialError(FailureKind.WRONG_SERVER, f"who answers at {url} cannot be told: {error}") from error
        for what, wanted, found in (
            ("nonce", nonce, identity.nonce),
            ("model", rig.model_path, identity.model_path),
        ):
            if wanted != found:
                message = f"another server answers at {url}: its {what} is {found[:200]!r}, not {wanted!r}"
                raise TrialError(FailureKind.WRONG_SERVER, message)
        if not rig.launcher.owns_port(trace.started):
            port, server_id = trace.started.port, trace.started.server_id
            message = f"port {port} is not held by the server that was started ({server_id})"
            raise TrialError(FailureKind.WRONG_SERVER, message)
        trace.prove(nonce=identity.nonce, model_path=identity.model_path, port_owned=True)
        trace.effective = rig.engine.effective(info)
        _require_decode(url, rig, trace)
        read_log(rig, trace)
    # Some servers come up without what was asked of them: only the log says so.
    shown = rig.engine.diagnose(trace.log.text(), None)
    if shown is not None and shown.kind is FailureKind.UNSUPPORTED:
        raise TrialError(shown.kind, shown.message, shown.evidence)


def _require_decode(url: str, rig: ServerRig, trace: LaunchTrace) -> None:
    """One real generation: after a bad restart a server can be healthy and never answer (sglang#22779)."""
    if rig.probe is None:
        return
    try:
        answer = rig.engine.parse(
            send(Target(url, trouble_of(rig, trace)), rig.probe, rig.probe_timeout_s, rig.clock)
        )
    except (ExchangeError, ValueError) as error:
        if has_died(rig, trace, DEATH_WAIT_S):
            raise death(rig, trace, "at its first generation") from error
        read_log(rig, trace)
        if sign := rig.engine.fatal_sign(trace.log.text()):
            raise stuck(rig, trace, sign) from error
        kind = FailureKind.SERVER_HANG if isinstance(error, ExchangeTimeout) else FailureKind.BENCHMARK_FAILED
        message = f"the server says that it is healthy, but its first generation failed: {error}"
        raise TrialError(kind, message, trace.log.last_lines()) from error
    trace.prove(num_probe_tokens=answer.num_output_tokens)
