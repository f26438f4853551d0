"""One launch: start the server, measure, write it down, stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from launchers.base import LaunchSpec
from sweeper.benchmark import Bench, measure
from sweeper.engines.base import Placement
from sweeper.errors import FailureKind, TrialError
from sweeper.http import Target
from sweeper.launch_record import LaunchDraft, Measured
from sweeper.records import LaunchRecord, Measurement, Proposal
from sweeper.rig import Rig
from sweeper.server import new_nonce, pick_port, running_server

Save = Callable[[LaunchRecord, Mapping[str, bytes]], LaunchRecord]


def run_launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
    """Launch and measure one configuration; its record is on disk before the server is stopped.

    A launch that fails is a record too. StopFailed and SweepInterrupted pass through, the server stopped as
    far as it can be.
    """
    launch = LaunchDraft(proposal, rig, rig.clock.now())
    if reasons := rig.engine.violations(proposal.canonical, rig.facts):
        return save(launch.failed(TrialError(FailureKind.ILLEGAL, "; ".join(reasons))), {})
    try:
        spec = _launch_spec(proposal, rig)
        launch.argv = spec.argv
        with running_server(spec, rig.server, launch.trace, rig.view.phase) as target:
            measured = measure_all(target, proposal, rig)
            require_score(proposal, measured, rig)
            record = save(launch.complete(measured), launch.artifacts(measured))
    except TrialError as error:
        return save(launch.failed(error), launch.artifacts({}))
    return save(launch.stopped(record), launch.artifacts(measured))


def measure_all(target: Target, proposal: Proposal, rig: Rig) -> dict[str, Measurement]:
    """Every workload in turn; after one that is given up as hopeless, none. Raises TrialError."""
    measured: dict[str, Measurement] = {}
    for load in rig.loads:
        name = load.workload.name
        rig.view.phase(f"measuring {name}" if len(rig.loads) > 1 else "measuring")
        measured[name] = measure(target, load, _bench(proposal, rig))
        if measured[name].estimated:
            break
    return measured


def require_score(proposal: Proposal, measured: Measured, rig: Rig) -> None:
    """Raises TrialError when what was measured is no score.

    SILENT_BYPASS: speculation was asked for and is not in force. A server that silently serves without it would
    otherwise look like a slow setting of it. BENCHMARK_FAILED: the objective is missing.
    """
    spec = rig.spec
    for measurement in measured.values():
        if reason := rig.engine.bypass(proposal.canonical, measurement.metrics):
            raise TrialError(FailureKind.SILENT_BYPASS, f"{reason} in {len(measurement.requests)} requests")
    if spec.objective.value({name: measurement.metrics for name, measurement in measured.items()}) is None:
        count = sum(len(measurement.requests) for measurement in measured.values())
        message = f"{spec.objective.text(spec.workload.name)} could not be measured in {count} requests"
        raise TrialError(FailureKind.BENCHMARK_FAILED, message)


def _bench(proposal: Proposal, rig: Rig) -> Bench:
    return Bench(rig.engine, rig.clock, rig.view.request_done, proposal.canonical, proposal.reference)


def _launch_spec(proposal: Proposal, rig: Rig) -> LaunchSpec:
    """The engine's command line at a free port; with the GPUs of the host, if only some are to be used."""
    host = rig.spec.host
    placement = Placement(
        command=rig.spec.engine.command,
        model_path=rig.facts.model_path,
        port=pick_port(rig.launcher),
        nonce=new_nonce(),
        bind=host.address or "127.0.0.1",
        num_nodes=1 + len(host.nodes),
        node_address=host.node_address,
    )
    spec = rig.engine.launch_spec(proposal.canonical, placement)
    if not host.gpus:
        return spec
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, host.gpus))}
    others = tuple(replace(other, env={**visible, **other.env}) for other in spec.others)
    return replace(spec, env={**visible, **spec.env}, others=others)
