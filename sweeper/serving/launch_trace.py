"""What is known of one launch while it runs, and how a dead server or a bad host is told apart from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from launchers.base import Launcher, ServerHandle, StopReport
from launchers.clock import Clock
from launchers.errors import HostDirty, HostLost, StartFailed
from launchers.gpus import GpuReading
from sweeper.engines.base import Engine, HttpRequest
from sweeper.errors import FailureKind, TrialError
from sweeper.records import PhaseTime, Proof
from sweeper.serving.launch_log import LaunchLog
from sweeper.spec import FlagValue, LimitsSpec

OnPhase = Callable[[str], None]

_POLL_S = 0.2


@dataclass
class LaunchTrace:
    """What is known of a launch, filled as it happens, so that a failure keeps its evidence.

    `log`: the server's, as far as it was read. `phases`: the start and the stop as a whole, and each phase of the
    start as `start: NAME`. `gpus_before`: the look that found the GPUs idle.
    """

    handle: ServerHandle | None = None
    phases: list[PhaseTime] = field(default_factory=list)
    effective: dict[str, FlagValue] = field(default_factory=dict)
    stop: StopReport | None = None
    log: LaunchLog = field(default_factory=LaunchLog)
    proof: Proof = field(default_factory=Proof)
    gpus_before: GpuReading | None = None

    @property
    def started(self) -> ServerHandle:
        """The handle, once there is one."""
        assert self.handle is not None  # set before anything else looks
        return self.handle

    def prove(self, **shown: object) -> None:
        """Add to the proof."""
        self.proof = self.proof.model_copy(update=shown)


@dataclass(frozen=True)
class ServerRig:
    """What starting and stopping takes. `shielded` holds interruptions back while it is open.

    `probe`: a short generation request that a ready server must answer in `probe_timeout_s` (its first one may
    still compile kernels); None: none is made. `watch_gpus`: whether a launch waits for idle GPUs.
    """

    engine: Engine
    launcher: Launcher
    clock: Clock
    limits: LimitsSpec
    model_path: str
    shielded: Callable[[], AbstractContextManager[None]] = nullcontext
    probe: HttpRequest | None = None
    probe_timeout_s: float = 120.0
    watch_gpus: bool = True


@contextmanager
def timed(phase: str, rig: ServerRig, trace: LaunchTrace) -> Iterator[None]:
    """Note how long a phase took, also when it failed."""
    began_s = rig.clock.monotonic_s()
    try:
        yield
    finally:
        trace.phases.append(PhaseTime(name=phase, duration_s=rig.clock.monotonic_s() - began_s))


@contextmanager
def host_errors() -> Iterator[None]:
    """While open: what a launcher raises is a TrialError of the matching kind. StopFailed passes."""
    try:
        yield
    except HostDirty as error:
        raise TrialError(FailureKind.HOST_DIRTY, str(error), error.holders) from error
    except HostLost as error:
        raise TrialError(FailureKind.HOST_LOST, str(error)) from error
    except StartFailed as error:
        raise TrialError(FailureKind.SERVER_CRASH, f"the server could not be started: {error}") from error


def read_log(rig: ServerRig, trace: LaunchTrace) -> None:
    """Read on in the server's log. Raises HostLost."""
    trace.log.read_on(rig.launcher, trace.started)


def memory_of(reading: GpuReading | None) -> tuple[int, ...]:
    """MiB in use on each GPU; empty where there is no nvidia-smi."""
    return tuple(gpu.memory_used_mib for gpu in reading.gpus) if reading else ()


def has_died(rig: ServerRig, trace: LaunchTrace, wait_s: float) -> bool:
    """Whether the server is gone, or goes within `wait_s` seconds. Raises HostLost."""
    deadline_s = rig.clock.monotonic_s() + wait_s
    while rig.launcher.is_alive(trace.started):
        if rig.clock.monotonic_s() >= deadline_s:
            return False
        rig.clock.sleep(_POLL_S)
    return True


def death(rig: ServerRig, trace: LaunchTrace, when: str) -> TrialError:
    """The failure of a server that has ended: what its log and exit code show, else a crash. Raises HostLost."""
    read_log(rig, trace)
    code = rig.launcher.exit_code(trace.started)
    found = rig.engine.diagnose(trace.log.text(), code)
    ending = f"the server ended {when}, exit code {'unknown' if code is None else code}"
    if found is None:
        return TrialError(FailureKind.SERVER_CRASH, ending, trace.log.last_lines())
    return TrialError(found.kind, f"{found.message}: {ending}", (*found.evidence, *trace.log.last_lines()))


def stuck(rig: ServerRig, trace: LaunchTrace, sign: str) -> TrialError:
    """The failure of a server that lives on but, by a line of its log, will never answer again."""
    found = rig.engine.diagnose(trace.log.text(), None)
    evidence = (sign, *trace.log.last_lines())
    if found is None:
        return TrialError(FailureKind.SERVER_CRASH, f"the server will not answer any more: {sign}", evidence)
    return TrialError(
        found.kind, f"{found.message}: the server lives on but is lost", (*found.evidence, *evidence)
    )
