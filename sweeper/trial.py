"""One launch: start the server, measure, write it down, stop."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version

from launchers.base import Launcher, LaunchSpec
from launchers.clock import Clock
from sweeper.benchmark import Bench, measure
from sweeper.engines.base import Engine, HostFacts, Placement
from sweeper.errors import FailureKind, TrialError
from sweeper.interrupts import Interrupts
from sweeper.launch_trace import LaunchTrace, ServerRig
from sweeper.live import View
from sweeper.load import Load
from sweeper.metrics import METRICS
from sweeper.records import Failure, LaunchRecord, Measurement, PhaseTime, Proposal, RequestResult
from sweeper.server import new_nonce, pick_port, running_server
from sweeper.spec import FlagValue, SweepSpec

_PROBE_TOKENS = 8

Save = Callable[[LaunchRecord, Mapping[str, bytes]], LaunchRecord]


@dataclass(frozen=True)
class Rig:
    """Everything with a side effect that a sweep works with, and the facts about it.

    `loads`: one per workload, the first one first. `start_limit_s`: what earlier starts have taught; None: what
    the specification says.
    """

    spec: SweepSpec
    engine: Engine
    launcher: Launcher
    clock: Clock
    facts: HostFacts
    view: View
    interrupts: Interrupts
    loads: tuple[Load, ...]
    start_limit_s: float | None = None

    @property
    def server(self) -> ServerRig:
        """What starting and stopping a server needs."""
        limits = self.spec.limits
        if self.start_limit_s is not None:
            limits = limits.model_copy(update={"start_s": self.start_limit_s})
        watch = self.spec.host.watch_gpus
        return ServerRig(
            engine=self.engine,
            launcher=self.launcher,
            clock=self.clock,
            limits=limits,
            model_path=self.facts.model_path,
            shielded=self.interrupts.shielded,
            watch_gpus=self.engine.on_gpus if watch is None else watch,
            probe=self.engine.request(self.loads[0].warmup, self.loads[0].workload, _PROBE_TOKENS),
        )


def run_launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
    """Launch and measure one configuration; its record is on disk before the server is stopped.

    A launch that fails is a record too. StopFailed and SweepInterrupted pass through, the server stopped as
    far as it can be.
    """
    launch = _Launch(proposal, rig, rig.clock.now())
    if reasons := rig.engine.violations(proposal.canonical, rig.facts):
        return save(launch.failed(TrialError(FailureKind.ILLEGAL, "; ".join(reasons))), {})
    try:
        spec = _launch_spec(proposal, rig)
        launch.argv = spec.argv
        with running_server(spec, rig.server, launch.trace, rig.view.phase) as target:
            rig.view.phase("measuring")
            measurement = measure(target, rig.loads[0], _bench(proposal, rig))
            require_score(proposal, measurement, rig)
            record = save(launch.complete(measurement), launch.artifacts(measurement.requests))
    except TrialError as error:
        return save(launch.failed(error), launch.artifacts(()))
    return save(launch.stopped(record), launch.artifacts(measurement.requests))


def require_score(proposal: Proposal, measurement: Measurement, rig: Rig) -> None:
    """Raises TrialError when what was measured is no score.

    SILENT_BYPASS: speculation was asked for and is not in force. A server that silently serves without it would
    otherwise look like a slow setting of it. BENCHMARK_FAILED: the objective is missing.
    """
    count = len(measurement.requests)
    if reason := rig.engine.bypass(proposal.canonical, measurement.metrics):
        raise TrialError(FailureKind.SILENT_BYPASS, f"{reason} in {count} requests")
    if (objective := rig.spec.objective_metric) not in measurement.metrics:
        message = f"{objective} could not be measured in {count} requests"
        raise TrialError(FailureKind.BENCHMARK_FAILED, message)


def _bench(proposal: Proposal, rig: Rig) -> Bench:
    return Bench(rig.engine, rig.clock, rig.view.request_done, proposal.canonical, proposal.reference)


class _Launch:
    """Builds the record of one launch from what is known when it ends."""

    def __init__(self, proposal: Proposal, rig: Rig, started_at: datetime.datetime) -> None:
        self.trace = LaunchTrace()
        self.argv: tuple[str, ...] = ()
        self._proposal = proposal
        self._rig = rig
        self._started_at = started_at

    def complete(self, measurement: Measurement) -> LaunchRecord:
        """The record of a measured launch whose server still runs."""
        inside = [
            PhaseTime(name=name, duration_s=measurement.metrics[f"{name}_s"])
            for name in ("warmup", "benchmark")
            if f"{name}_s" in measurement.metrics
        ]
        record = self._record()
        shown = self._rig.engine.running_mistakes(self._proposal.canonical, self.trace.reading.text())
        return record.model_copy(
            update={
                "surprises": (*record.surprises, *shown),
                "phases": (*self.trace.phases, *inside),
                "metrics": {**measurement.metrics, **_phase_metrics(self.trace.phases)},
                "repeat_throughputs": measurement.repeat_throughputs,
                "prompt_throughputs": measurement.prompt_throughputs,
                "accepted_per_position": measurement.accepted_per_position,
                "accept_definition": measurement.accept_definition,
            }
        )

    def stopped(self, record: LaunchRecord) -> LaunchRecord:
        """The same record once the server is gone: with the time its stop took, and the whole proof."""
        return record.model_copy(
            update={
                "phases": (*record.phases, *(phase for phase in self.trace.phases if phase.name == "stop")),
                "metrics": {**record.metrics, **_phase_metrics(self.trace.phases)},
                "ended_at": self._rig.clock.now(),
                "proof": self.trace.proof,
            }
        )

    def failed(self, error: TrialError) -> LaunchRecord:
        """The record of a launch without a score."""
        failure = Failure(kind=error.kind, message=str(error)[:2000], evidence=error.evidence[:50])
        return self._record().model_copy(
            update={"failure": failure, "metrics": _phase_metrics(self.trace.phases)},
        )

    def artifacts(self, requests: tuple[RequestResult, ...]) -> dict[str, bytes]:
        """The files kept beside the record: the server's log, and one line per measured request."""
        lines = "".join(request.model_dump_json(exclude_none=True) + "\n" for request in requests)
        files = {"server.log": self.trace.log, "requests.jsonl": lines.encode()}
        return {name: content for name, content in files.items() if content}

    def _record(self) -> LaunchRecord:
        proposal, rig, trace = self._proposal, self._rig, self.trace
        return LaunchRecord(
            trial_number=proposal.trial_number,
            launch_number=proposal.launch_number,
            purpose=proposal.purpose,
            requested=proposal.requested,
            canonical=proposal.canonical,
            effective=trace.effective,
            surprises=surprises(rig.engine.reported(proposal.canonical, rig.facts), trace.effective),
            argv=self.argv,
            host=rig.launcher.host,
            server_id=trace.handle.server_id if trace.handle else "",
            started_at=self._started_at,
            ended_at=rig.clock.now(),
            phases=tuple(trace.phases),
            proof=trace.proof,
            provenance=provenance(rig),
        )


def surprises(asked: Mapping[str, FlagValue], effective: Mapping[str, FlagValue]) -> tuple[str, ...]:
    """Flags that the running server reports with another value than it was given, one line each."""
    return tuple(
        f"{name}: asked for {asked[name]!r}, the server reports {value!r}"
        for name, value in effective.items()
        if name in asked and asked[name] != value
    )


def provenance(rig: Rig) -> dict[str, str]:
    """Where a number comes from; numbers of different provenance are not compared."""
    return {
        "engine": rig.engine.name,
        "engine_version": rig.facts.engine_version,
        "model": rig.spec.model.name,
        "model_fingerprint": rig.facts.model_fingerprint,
        "host": rig.launcher.host,
        "workload": rig.spec.workload.name,
        "specsweep_version": version("specsweep"),
    }


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


def _phase_metrics(phases: list[PhaseTime]) -> dict[str, float]:
    return {f"{phase.name}_s": phase.duration_s for phase in phases if f"{phase.name}_s" in METRICS}
