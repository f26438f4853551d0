"""One launch: start the server, measure, write it down, stop."""

from __future__ import annotations

from launchers.replies import MARKER
from sweeper.engines.environ import environ_argv, parse_environ
from sweeper.errors import FailureKind, TrialError
from sweeper.http import Target
from sweeper.launch_record import LaunchDraft, Measured, Save
from sweeper.measuring.benchmark import Bench, measure
from sweeper.measuring.figures import pooled_drafts
from sweeper.measuring.gpu_watch import GpuWatch
from sweeper.measuring.host_load import HostLoad, python_of, send_all_from
from sweeper.objective import SCORE
from sweeper.records import GpuWindow, LaunchRecord, Measurement, Proposal
from sweeper.rig import Rig
from sweeper.serving.launch_trace import LaunchTrace, host_errors
from sweeper.serving.server import new_nonce, pick_port, running_server
from sweeper.text import plain
from sweeper.workload_spec import WorkloadSpec

_ENVIRON_TIMEOUT_S = 30.0


def run_launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
    """Launch and measure one configuration; its record is on disk before the server is stopped.

    A launch that fails is a record too. StopFailed and SweepInterrupted pass through, the server stopped as
    far as it can be.
    """
    launch = LaunchDraft(proposal, rig, rig.clock.now())
    if reasons := rig.engine.violations(proposal.canonical, rig.facts):
        return save(launch.failed(TrialError(FailureKind.ILLEGAL, "; ".join(reasons))), {})
    try:
        spec = rig.placing.launch_spec(proposal.canonical, pick_port(rig.launcher), new_nonce())
        launch.argv = spec.argv
        with running_server(spec, rig.server, launch.trace, rig.view.phase) as target:
            launch.doubts += require_unfaked(launch.trace, rig)
            with gpu_watch(launch.trace, rig) as watch:
                measured = measure_all(target, proposal, spec.port, rig)
            require_alone(watch.window())
            require_score(proposal, measured, rig)
            record = save(launch.complete(measured, watch), launch.artifacts(measured))
    except TrialError as error:
        return save(launch.failed(error), launch.artifacts({}))
    return save(launch.stopped(record), launch.artifacts(measured))


def require_unfaked(trace: LaunchTrace, rig: Rig) -> tuple[str, ...]:
    """Raises TrialError(FAKED) when the environment of the running server makes it pretend.

    What a launch unsets can be set again on the way: by a wrapper script, or a container's entry point. Where
    the environment cannot be seen, that is a doubt.
    """
    engine = rig.engine
    if not engine.faked_by:
        return ()
    argv = environ_argv(f"{MARKER}={trace.started.server_id}", engine.faked_by)
    with host_errors():
        result = rig.launcher.run(argv, _ENVIRON_TIMEOUT_S)
    if reason := engine.faked(parse_environ(result.stdout)):
        raise TrialError(FailureKind.FAKED, reason)
    if result.exit_code == 0:
        return ()
    why = plain(result.stderr.decode("utf-8", "replace").strip(), 200)
    return (f"whether the server's environment fakes anything is not known: {why}",)


def gpu_watch(trace: LaunchTrace, rig: Rig) -> GpuWatch:
    """Looks at the GPUs meanwhile, where they are looked at at all."""
    host = rig.spec.host if rig.watch_gpus else rig.spec.host.model_copy(update={"gpu_sample_s": 0.0})
    return GpuWatch(rig.launcher, host, trace.started, trace.gpus_before)


def require_alone(window: GpuWindow) -> None:
    """Raises TrialError(HOST_DIRTY) when somebody else used the GPUs while they were measured."""
    if window.others:
        message = f"somebody else used the GPUs during the measurement: {'; '.join(window.others)}"
        raise TrialError(FailureKind.HOST_DIRTY, message, window.others)


def measure_all(target: Target, proposal: Proposal, port: int, rig: Rig) -> dict[str, Measurement]:
    """Every workload in turn; after one that is given up as hopeless, none. Raises TrialError."""
    measured: dict[str, Measurement] = {}
    for load in rig.loads:
        name = load.workload.name
        rig.view.phase(f"measuring {name}" if len(rig.loads) > 1 else "measuring")
        measured[name] = measure(target, load, _bench(proposal, load.workload, port, rig))
        if measured[name].estimated:
            break
    return measured


def require_score(proposal: Proposal, measured: Measured, rig: Rig) -> None:
    """Raises TrialError when what was measured is no score.

    SILENT_BYPASS: speculation was asked for and is not in force. A server that silently serves without it would
    otherwise look like a slow setting of it. BENCHMARK_FAILED: the objective is missing.
    """
    spec = rig.spec
    count = sum(len(measurement.requests) for measurement in measured.values())
    # Over all workloads: one alone may simply have nothing to draft from.
    drafts = pooled_drafts([measurement.metrics for measurement in measured.values()])
    if reason := rig.engine.bypass(proposal.canonical, drafts):
        raise TrialError(FailureKind.SILENT_BYPASS, f"{reason} in {count} requests")
    if spec.objective.value({name: measurement.metrics for name, measurement in measured.items()}) is None:
        message = f"{spec.objective.text(spec.workload.name)} could not be measured in {count} requests"
        raise TrialError(FailureKind.BENCHMARK_FAILED, message)


def _bench(proposal: Proposal, workload: WorkloadSpec, port: int, rig: Rig) -> Bench:
    """What a workload is measured with. Only one that alone decides the objective ends hopeless launches early."""
    spec = rig.spec
    host_load = HostLoad(
        launcher=rig.launcher,
        python=python_of(spec.engine.command),
        address=spec.host.address or "127.0.0.1",
        port=port,
        state_dir=spec.host.state_dir,
    )
    decides = workload.name == spec.workload.name and spec.objective_metric != SCORE
    return Bench(
        engine=rig.engine,
        clock=rig.clock,
        on_request=rig.view.request_done,
        config=proposal.canonical,
        reference=proposal.reference if decides else None,
        send_all=send_all_from(host_load, rig.view.phase),
        objective_metric=spec.objective_metric if decides else "",
    )
