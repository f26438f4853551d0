"""From `objective` to the schema's terms: METRIC, WORKLOAD.METRIC, or a mapping of these to weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweeper.config.mistakes import shown, valid_names
from sweeper.metrics import METRICS

_OBJECTIVES = tuple(metric.name for metric in METRICS.values() if metric.objective)


def build_objective(raw: object, workloads: Sequence[str]) -> tuple[dict[str, object], list[str]]:
    """The objective in the schema's shape, and what is wrong with it (then the shape is a stand-in).

    `workloads` are the names, the first one first; empty when they are not known.
    """
    first = workloads[0] if workloads else "?"
    weights = _flat(raw) if isinstance(raw, Mapping) else {raw: 1}
    mistakes: list[str] = []
    terms: dict[tuple[str, str], dict[str, object]] = {}
    for name, weight in weights.items():
        workload, metric = _parts(name, first)
        lines = _name_mistakes(name, workload, metric, workloads)
        if isinstance(raw, Mapping):
            lines += _weight_mistakes(name, weight)
        if (workload, metric) in terms:
            lines.append(f"objective: {shown(name)} is named twice; {first!r} is the first workload")
        terms[workload, metric] = {"workload": workload, "metric": metric, "weight": weight}
        mistakes += lines
    if not terms:
        mistakes.append(f"objective: is empty; {valid_names('', _OBJECTIVES)}")
    stand_in: list[dict[str, object]] = [{"workload": first, "metric": _OBJECTIVES[0]}]
    return {"terms": stand_in if mistakes else list(terms.values())}, mistakes


def _flat(raw: Mapping[str, object]) -> dict[object, object]:
    """The weights by name; `objective.busy.output_throughput=1` arrives as a mapping in a mapping."""
    flat: dict[object, object] = {}
    for name, weight in raw.items():
        inner = weight if isinstance(weight, Mapping) else {"": weight}
        flat |= {f"{name}.{metric}" if metric else name: value for metric, value in inner.items()}
    return flat


def _parts(name: object, first: str) -> tuple[str, str]:
    """The workload and the metric that a name means."""
    workload, dot, metric = str(name).rpartition(".")
    return (workload, metric) if dot else (first, metric)


def _name_mistakes(name: object, workload: str, metric: str, workloads: Sequence[str]) -> list[str]:
    if not isinstance(name, str):
        forms = "a metric, WORKLOAD.METRIC, or a mapping of these to weights"
        return [f"objective: {shown(name)} should be {forms}"]
    if workloads and workload not in workloads:
        return [f"objective: {shown(name)}: there is no such workload; {valid_names(workload, workloads)}"]
    if metric not in _OBJECTIVES:
        reason = "is recorded but cannot be ranked by" if metric in METRICS else "is not a metric"
        return [f"objective: {shown(name)} {reason}; {valid_names(metric, _OBJECTIVES)}"]
    return []


def _weight_mistakes(name: object, weight: object) -> list[str]:
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        return [f"objective.{name}: {shown(weight)} should be a number: the weight of this metric"]
    if not 0 < weight < float("inf"):
        return [f"objective.{name}: {shown(weight)} should be a number greater than 0"]
    return []
