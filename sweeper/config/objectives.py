"""From `objective` to the schema's terms: METRIC, WORKLOAD.METRIC, or a mapping of these to weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from sweeper.config.mistakes import checked, shown, valid_names
from sweeper.metric_names import metric_meant
from sweeper.metrics import METRICS
from sweeper.objective import Term

LEAST_WEIGHT = 1e-6
"""Weights count relative to one another, and the smallest doubles have too few digits left to be compared."""

_OBJECTIVES = tuple(metric.name for metric in METRICS.values() if metric.objective)
_VALID = valid_names("", _OBJECTIVES)
_NOT_RANKED = "is recorded but cannot be ranked by"


def build_objective(raw: object, workloads: Sequence[str]) -> tuple[dict[str, object], list[str]]:
    """The objective in the schema's shape, and what is wrong with it (then the shape is a stand-in).

    `workloads` are the names, the first one first; empty when they are not known.
    """
    first = workloads[0] if workloads else "?"
    stand_in: dict[str, object] = {"terms": [{"workload": first, "metric": _OBJECTIVES[0]}]}
    if not isinstance(raw, str | Mapping):
        forms = "a metric, WORKLOAD.METRIC, or a mapping of these to weights"
        return stand_in, [f"objective: {shown(raw)} should be {forms}"]
    weights = {raw: 1} if isinstance(raw, str) else _flat(raw)
    mistakes = [] if weights else [f"objective: is empty; {_VALID}"]
    terms: dict[tuple[str, str], dict[str, object]] = {}
    for name, weight in weights.items():
        workload, metric = _parts(name, first)
        mistakes += [*_name_mistakes(name, workload, metric, workloads), *_weight_mistakes(name, weight)]
        if (workload, metric) in terms:
            mistakes.append(f"objective: {shown(name)} is named twice; {first!r} is the first workload")
        terms[workload, metric] = {"workload": workload, "metric": metric, "weight": weight}
    return stand_in if mistakes else {"terms": list(terms.values())}, mistakes


def _flat(raw: Mapping[str, object]) -> dict[str, object]:
    """The weights by name; `objective.busy.output_throughput=1` arrives as a mapping in a mapping."""
    flat: dict[str, object] = {}
    for name, weight in raw.items():
        inner = weight if isinstance(weight, Mapping) else {"": weight}
        flat |= {f"{name}.{metric}" if metric else name: value for metric, value in inner.items()}
    return flat


def _parts(name: str, first: str) -> tuple[str, str]:
    """The workload and the metric that a name means."""
    workload, dot, metric = name.rpartition(".")
    return (workload, metric) if dot else (first, metric)


def _name_mistakes(name: str, workload: str, metric: str, workloads: Sequence[str]) -> list[str]:
    if workloads and workload not in workloads:
        return [f"objective: {shown(name)}: there is no such workload; {valid_names(workload, workloads)}"]
    if metric in _OBJECTIVES:
        return []
    if metric in METRICS:
        return [f"objective: {shown(name)} {_NOT_RANKED}; {_VALID}"]
    near = metric_meant(metric)
    why = "" if near in _OBJECTIVES else f" It {_NOT_RANKED}"
    return [
        f"objective: {shown(name)} is not a metric; {_VALID}" + (f" (did you mean {near}?{why})" if near else "")
    ]


def _weight_mistakes(name: str, weight: object) -> list[str]:
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        return [f"objective.{name}: {shown(weight)} should be a number: the weight of this metric"]
    if not 0 < weight < float("inf"):
        return [f"objective.{name}: {shown(weight)} should be a number greater than 0"]
    if weight < LEAST_WEIGHT:
        return [f"objective.{name}: {shown(weight)} should be {LEAST_WEIGHT:g} or greater"]
    try:
        checked(partial(Term, workload="", metric="", weight=weight))
    except ValueError as error:
        return [f"objective.{name}: {shown(weight)} {error}"]
    return []
