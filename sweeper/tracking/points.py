"""The metrics of a trial's run in MLflow: one value each, the further workloads' under their names. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sweeper.metrics import METRICS
from sweeper.records import LaunchRecord, TrialRecord, TrialState, prediction_error_pct

REPEAT_SERIES = "repeat_output_throughput"

PREDICTED = "predicted_"
PREDICTION_ERROR = "prediction_error_pct"
_CHANCES = ("p_start", "gain_pct", "remaining_pct")
_PREDICTED_NAMES = {
    f"{PREDICTED}{name}"
    for name in (
        *("accept_length", "step_ms", *_CHANCES),
        *(f"{m.name}{end}" for m in METRICS.values() if m.objective for end in ("", "_low", "_high")),
    )
}

_METRIC_NAMES = {
    *METRICS,
    *(metric.mlflow_alias for metric in METRICS.values()),
    *_PREDICTED_NAMES,
    REPEAT_SERIES,
    PREDICTION_ERROR,
} - {""}


@dataclass(frozen=True)
class Point:
    """One metric value as MLflow stores it. Equal points are stored once, so that a replay adds nothing."""

    name: str
    value: float
    timestamp_ms: int
    step: int = 0


def run_points(trial: TrialRecord, baseline: TrialRecord | None, objective: str) -> tuple[Point, ...]:
    """Means over the measured launches as single-step metrics, and the repeats as a series of another name.

    A further workload's metrics bear its name: `busy.output_throughput`.

    A trial that is not complete has the times of its phases and nothing that could be ranked. The times
    are those of the records, so that a replay stores nothing twice; of two values under one name and step MLflow
    shows the one with the later time, which is that of the newest launch.
    """
    launches = trial.measured or trial.launches
    if not launches:
        return ()
    at_ms = milliseconds(launches[-1].ended_at)
    means = _phase_means(launches)
    if trial.state is TrialState.COMPLETE:
        means |= {name: mean for name in METRICS if (mean := trial.mean(name)) is not None}
    points = [_point(name, value, at_ms) for name, value in sorted(means.items())]
    alias = [
        Point(METRICS[point.name].mlflow_alias, point.value, at_ms)
        for point in points
        if METRICS[point.name].mlflow_alias
    ]
    speedup = _speedup(means.get(objective), at_ms, baseline, objective)
    further = _further(trial, at_ms) if trial.state is TrialState.COMPLETE else []
    return (*points, *alias, *speedup, *further, *_predicted(trial, objective), *_repeats(trial))


def _predicted(trial: TrialRecord, objective: str) -> list[Point]:
    """What the search expected of the trial, dated by its first launch: that does not change any more."""
    forecast, at_ms = trial.forecast, milliseconds(trial.launches[0].ended_at)
    if forecast is None:
        return []
    found: dict[str, float | None] = {name: getattr(forecast, name) for name in _CHANCES}
    if (span := forecast.throughput) is not None:
        found |= {objective: span.mean, f"{objective}_low": span.low, f"{objective}_high": span.high}
    for name, known in (("accept_length", forecast.accept_length), ("step_ms", forecast.step_ms)):
        found[name] = known.mean if known else None
    points = [Point(f"{PREDICTED}{name}", round(v, 4), at_ms) for name, v in found.items() if v is not None]
    error = prediction_error_pct(trial, objective)
    return points if error is None else [*points, Point(PREDICTION_ERROR, round(error, 2), at_ms)]


def _further(trial: TrialRecord, at_ms: int) -> list[Point]:
    """The means of what was measured under further workloads; MLflow takes all names that these may have."""
    found: dict[str, list[Mapping[str, float]]] = {}
    for launch in trial.measured:
        for workload, result in launch.others.items():
            found.setdefault(workload, []).append(result.metrics)
    return [
        replace(_point(name, sum(values) / len(values), at_ms), name=f"{workload}.{name}")
        for workload, metrics in found.items()
        for name in METRICS
        if (values := [measured[name] for measured in metrics if name in measured])
    ]


def _phase_means(launches: Sequence[LaunchRecord]) -> dict[str, float]:
    durations: dict[str, list[float]] = {}
    for phase in (phase for launch in launches for phase in launch.phases):
        durations.setdefault(f"{phase.name}_s", []).append(phase.duration_s)
    return {name: sum(values) / len(values) for name, values in durations.items() if name in METRICS}


def _speedup(value: float | None, at_ms: int, baseline: TrialRecord | None, objective: str) -> tuple[Point, ...]:
    base = baseline.mean(objective) if baseline else None
    if value is None or not baseline or not base:
        return ()
    return (_point("speedup", value / base, max(at_ms, milliseconds(baseline.measured[-1].ended_at))),)


def _repeats(trial: TrialRecord) -> list[Point]:
    if trial.state is not TrialState.COMPLETE:
        return []
    repeats = [(launch, value) for launch in trial.measured for value in launch.repeat_throughputs]
    return [
        Point(REPEAT_SERIES, round(value, 2), milliseconds(launch.ended_at), step)
        for step, (launch, value) in enumerate(repeats, start=1)
    ]


def _point(name: str, value: float, at_ms: int) -> Point:
    return Point(name, round(value, METRICS[name].digits + 1), at_ms)


def foreign_metrics(names: Iterable[str], points: Iterable[Point]) -> set[str]:
    """Which of a run's metrics have names that we give, but are not among `points`."""
    ours = {point.name for point in points}
    workloads = {"", *(name.rpartition(".")[0] for name in ours)}
    parts = {name: name.rpartition(".") for name in names}
    return {name for name, (head, _, last) in parts.items() if head in workloads and last in _METRIC_NAMES} - ours


def milliseconds(moment: datetime.datetime) -> int:
    """Since the epoch, as MLflow counts."""
    return round(moment.timestamp() * 1000)
