"""The page of a study's experiment in MLflow: its description and a saved view of its run list. Pure.

The saved view is a tag that MLflow's page reads when the address names it. Its format is undocumented (seen
working in 3.17.2), so it is a convenience: without it the page shows the same runs, without columns.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sweeper.metrics import METRICS
from sweeper.spec import digest
from sweeper.tracking.view import (
    FINISHED,
    TAG_DOUBTS,
    TAG_ESTIMATED,
    TAG_FAILURE,
    TAG_LOSSY,
    TAG_STATE,
    RunView,
    cut,
)

VIEW_KEY = "specsweep"
TAG_VIEW = f"mlflow.sharedViewState.{VIEW_KEY}"
TAG_VERDICT = "specsweep.verdict"
TAG_PAGE = "specsweep.page"
MAX_PARAM_COLUMNS = 8
MAX_AXES = 6
_METRIC_COLUMNS = ("speedup", "accept_len", "ttft_ms", "tpot_ms", "start_s")
_WORKLOAD_METRIC = ".output_throughput"
_NOTES = (TAG_ESTIMATED, TAG_DOUBTS, TAG_LOSSY)
_RUN_NAME = "attributes.`Run Name`"
_SECTION = "specsweep"
_CHART_SECTION = {
    "uuid": _SECTION,
    "name": "Sweep",
    "display": True,
    "isReordered": False,
    "columns": 1,
}
"""Three charts beside each other, as MLflow has them by default, cannot be read next to the list. Their height
stays the default one: in a higher card the parallel coordinates never appear (seen in 3.17.2)."""


def view_fragment(experiment_id: str) -> str:
    """The part of the page's address that opens the run list with the saved view."""
    return f"#/experiments/{experiment_id}/runs?workflowType=machine_learning&viewStateShareKey={VIEW_KEY}"


def page_tags(
    objective: str,
    facts: Mapping[str, str],
    verdict: str | None,
    views: Sequence[RunView],
    baseline_run: str = "",
) -> dict[str, str]:
    """The experiment's tags. `specsweep.page` comes last and holds their digest: written means all are.

    `baseline_run`: the id of the run that is pinned, so that it is loaded however many others are better; empty
    when unknown.
    """
    state = saved_state(objective, searched_params(views), further_columns(views), charted_params(views))
    state["runsPinned"] = [baseline_run] if baseline_run else []
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    shared = {"name": "specsweep: best first", "createdAt": 0, "updatedAt": 0, "state": f"deflate;{packed}"}
    tags = {
        "mlflow.experimentKind": "custom_model_development",
        "mlflow.note.content": description(facts, verdict),
        TAG_VIEW: json.dumps(shared),
    }
    if verdict:
        tags[TAG_VERDICT] = cut(verdict, 5000)
    return {**tags, TAG_PAGE: digest(tags)}


def description(facts: Mapping[str, str], verdict: str | None) -> str:
    """Markdown: the verdict, if there is one, then what all trials have in common."""
    lines = [f"    {line}" for line in (verdict or "no verdict yet").splitlines()]
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in facts.items()]
    table = ["", "| fact | value |", "| --- | --- |", *rows] if rows else []
    where = ["", "The whole report of a sweep that has ended: report.html, with the artifacts of trial 0."]
    return cut("\n".join([*lines, *where, *table]), 10_000)


def _cell(text: str) -> str:
    return cut(" ".join(text.split()).replace("|", "\\|"), 500)


def searched_params(views: Sequence[RunView]) -> list[str]:
    """The parameters that differ between trials, most values first: the columns that explain a rank."""
    names = dict.fromkeys(name for view in views for name in view.params)
    counts = {name: len({view.params.get(name) for view in views}) for name in names}
    varied = sorted((name for name in names if counts[name] > 1), key=lambda name: (-counts[name], name))
    return varied[:MAX_PARAM_COLUMNS]


def charted_params(views: Sequence[RunView]) -> list[str]:
    """The axes of the parallel coordinates: MLflow leaves out every run that lacks one of them.

    So they are the parameters that all measured trials but the baseline have, and in which these differ.
    """
    measured = [view for view in views if view.status == FINISHED and not view.trial.is_baseline]
    first = measured[0].params if measured else {}
    common = [name for name in first if all(name in view.params for view in measured)]
    counts = {name: len({view.params[name] for view in measured}) for name in common}
    varied = sorted((name for name in common if counts[name] > 1), key=lambda name: (-counts[name], name))
    return varied[:MAX_AXES]


def further_columns(views: Sequence[RunView]) -> list[str]:
    """Columns that not every sweep needs: the throughput under further workloads, and notes on the numbers."""
    points = (point.name for view in views for point in view.points if point.name.endswith(_WORKLOAD_METRIC))
    notes = [name for name in _NOTES if any(name in view.tags for view in views)]
    return [*(f"metrics.`{name}`" for name in dict.fromkeys(points)), *(f"tags.`{name}`" for name in notes)]


def saved_state(
    objective: str, params: Sequence[str], further: Sequence[str] = (), axes: Sequence[str] = ()
) -> dict[str, Any]:
    """The state of MLflow's run list: the columns that matter, best first, and three charts.

    `params`, `further`: columns; `axes`: the parameters of the parallel coordinates.
    """
    metrics = [objective, *(name for name in _METRIC_COLUMNS if name != objective)]
    columns = [
        *(f"metrics.`{name}`" for name in metrics),
        *further,
        *(f"tags.`{name}`" for name in (TAG_STATE, TAG_FAILURE)),
        *(f"params.`{name}`" for name in params),
    ]
    return {
        "searchFilter": "",
        "orderByKey": f"metrics.`{objective}`",
        "orderByAsc": METRICS[objective].better == "lower",
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": columns,
        "columnOrder": [_RUN_NAME, *columns],
        "columnWidths": {_RUN_NAME: 300, **dict.fromkeys(columns, 95), f"metrics.`{objective}`": 145},
        "runsHiddenMode": "SHOWALL",
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": False,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
        "compareRunSections": [_CHART_SECTION],
        "compareRunCharts": _charts(objective, axes),
    }


def _charts(objective: str, params: Sequence[str]) -> list[dict[str, Any]]:
    same = {"runsCountToCompare": 100, "metricSectionId": _SECTION, "deleted": False, "isGenerated": False}
    parallel = {"selectedParams": list(params), "selectedMetrics": [objective], "showAllRuns": True}
    axes = {
        "xaxis": {"key": "accept_len", "type": "METRIC"},
        "yaxis": {"key": objective, "type": "METRIC"},
    }
    return [
        {"uuid": "bar", "type": "BAR", "metricKey": objective, **same},
        {"uuid": "parallel", "type": "PARALLEL", **parallel, **same},
        {"uuid": "scatter", "type": "SCATTER", **axes, **same},
    ]
