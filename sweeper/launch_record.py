"""The record of one launch, built from what is known when it ends."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence

from sweeper.errors import TrialError
from sweeper.measuring.gpu_watch import GpuWatch
from sweeper.metrics import METRICS
from sweeper.objective import SCORE
from sweeper.provenance import provenance_of
from sweeper.records import Failure, LaunchRecord, Measurement, PhaseTime, Proposal, WorkloadResult
from sweeper.rig import Rig
from sweeper.serving.launch_trace import LaunchTrace
from sweeper.spec import FlagValue

Measured = Mapping[str, Measurement]
"""Workload to what was measured under it, in the order in which they were measured."""

Save = Callable[[LaunchRecord, Mapping[str, bytes]], LaunchRecord]
"""Writes a record and its artifacts down; the record as it was written."""

_PHASES = ("warmup", "benchmark")


class LaunchDraft:
    """What is known of a launch so far; each method gives the record at one way to end."""

    def __init__(self, proposal: Proposal, rig: Rig, started_at: datetime.datetime) -> None:
        self.trace = LaunchTrace()
        self.argv: tuple[str, ...] = ()
        self.doubts: tuple[str, ...] = ()
        self._proposal = proposal
        self._rig = rig
        self._started_at = started_at
        self._began_s = rig.clock.monotonic_s()

    def complete(self, measured: Measured, watch: GpuWatch) -> LaunchRecord:
        """The record of a measured launch whose server still runs; `watch` looked at the GPUs meanwhile."""
        record = self._record()
        shown = self._rig.engine.running_mistakes(self._proposal.canonical, self.trace.log.text())
        first = measured.get(self._rig.spec.workload.name, WorkloadResult())
        return record.model_copy(
            update={
                **{name: getattr(first, name) for name in WorkloadResult.model_fields},
                "others": {name: result_of(m) for name, m in measured.items() if m is not first},
                "surprises": (*record.surprises, *shown),
                "phases": (*self.trace.phases, *_measuring_phases(measured)),
                "metrics": {
                    **first.metrics,
                    **watch.metrics(),
                    **self._score(measured),
                    **_phase_metrics(self.trace.phases),
                    **self._spent(watch.metrics()),
                },
                "gpu": watch.window(),
                "estimated": next((m.estimated for m in measured.values() if m.estimated), ""),
                "doubts": (*first.doubts, *watch.doubts(), *self.doubts),
            }
        )

    def stopped(self, record: LaunchRecord) -> LaunchRecord:
        """The same record once the server is gone: with the time its stop took, and the whole proof."""
        return record.model_copy(
            update={
                "phases": (*record.phases, *(phase for phase in self.trace.phases if phase.name == "stop")),
                "metrics": {
                    **record.metrics,
                    **_phase_metrics(self.trace.phases),
                    **self._spent(record.metrics),
                },
                "ended_at": self._rig.clock.now(),
                "proof": self.trace.proof,
            }
        )

    def failed(self, error: TrialError) -> LaunchRecord:
        """The record of a launch without a score."""
        failure = Failure(kind=error.kind, message=str(error)[:2000], evidence=error.evidence[:50])
        return self._record().model_copy(
            update={"failure": failure, "metrics": {**_phase_metrics(self.trace.phases), **self._spent({})}},
        )

    def artifacts(self, measured: Measured) -> dict[str, bytes]:
        """The files kept beside the record: the server's log, and per workload one line per measured request."""
        files = {"server.log": self.trace.log.content()}
        for name, measurement in measured.items():
            lines = "".join(request.model_dump_json(exclude_none=True) + "\n" for request in measurement.requests)
            first = name == self._rig.spec.workload.name
            files["requests.jsonl" if first else f"requests-{name}.jsonl"] = lines.encode()
        return {name: content for name, content in files.items() if content}

    def _score(self, measured: Measured) -> dict[str, float]:
        """The objective, where it is more than one of the first workload's own metrics."""
        spec = self._rig.spec
        if spec.objective_metric != SCORE:
            return {}
        value = spec.objective.value({name: measurement.metrics for name, measurement in measured.items()})
        return {} if value is None else {SCORE: value}

    def _spent(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Time and energy of the launch so far; the latter where its GPUs told their power."""
        spent_s = self._rig.clock.monotonic_s() - self._began_s
        power = metrics.get("gpu_power_w")
        return {"launch_s": spent_s, **({} if power is None else {"energy_wh": power * spent_s / 3600})}

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
            lossy=tuple(rig.engine.lossy(proposal.canonical, rig.baseline)),
            proof=trace.proof,
            provenance=provenance_of(rig.spec, rig.facts, rig.launcher.host),
        )


def result_of(measurement: Measurement) -> WorkloadResult:
    """The numbers of a measurement, without the raw requests."""
    return WorkloadResult(**{name: getattr(measurement, name) for name in WorkloadResult.model_fields})


def surprises(asked: Mapping[str, FlagValue], effective: Mapping[str, FlagValue]) -> tuple[str, ...]:
    """Flags that the running server reports with another value than it was given, one line each."""
    return tuple(
        f"{name}: asked for {asked[name]!r}, the server reports {value!r}"
        for name, value in effective.items()
        if name in asked and asked[name] != value
    )


def _measuring_phases(measured: Measured) -> list[PhaseTime]:
    """What warming up and measuring took, over all workloads."""
    totals = {
        name: [m.metrics[f"{name}_s"] for m in measured.values() if f"{name}_s" in m.metrics] for name in _PHASES
    }
    return [PhaseTime(name=name, duration_s=sum(times)) for name, times in totals.items() if times]


def _phase_metrics(phases: Sequence[PhaseTime]) -> dict[str, float]:
    return {f"{phase.name}_s": phase.duration_s for phase in phases if f"{phase.name}_s" in METRICS}
