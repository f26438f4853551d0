"""The part of the report on how it was measured: warm-up, passes, what the client cost, client against server."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from analysis.blocks import Paragraph, Section, Table
from analysis.markup import Markdown, heading, inline, number
from analysis.reading import Reading
from sweeper.records import WorkloadResult

_SHOWN = {
    "num_warmup_requests": "left out of every number",
    "warmup_s": "left out of every number",
    "num_repeats": "over all prompts",
    "benchmark_s": "what the numbers are drawn from",
    "server_gap_pct": "more than 1 % (and 3 ms) apart is a doubt where requests follow one another",
    "client_cpu_pct": "near 100 % the client is the limit",
    "client_lag_ms": "behind the moment that was planned",
}


def measuring(reading: Reading) -> Section | None:
    """Medians and ranges over the measured launches, per workload."""
    results: dict[str, list[WorkloadResult]] = {reading.first_workload: list(reading.measured)}
    for launch in reading.measured:
        for name, result in launch.others.items():
            results.setdefault(name, []).append(result)
    rows = [
        row
        for name, found in results.items()
        for metric in _SHOWN
        if (row := _row(name if len(results) > 1 else "", metric, [result.metrics for result in found]))
    ]
    if not rows:
        return None
    columns = {"what": "l", "median": "r", "lowest": "r", "highest": "r", "launches": "r", "note": "l"}
    words = "Per launch: what was sent before measuring began, how long was measured, and what the client cost."
    table = Table(Markdown("Warm-up, passes and the client's cost over all measured launches"), columns, rows)
    return Section("How it was measured", [Paragraph(Markdown(words)), table], folded=True)


def _row(workload: str, metric: str, metrics: Sequence[Mapping[str, float]]) -> list[Markdown]:
    """One line of the table; empty when no launch has the metric."""
    values = [found[metric] for found in metrics if metric in found]
    if not values:
        return []
    label = f"{workload}: {heading(metric)}" if workload else heading(metric)
    figures = (statistics.median(values), min(values), max(values))
    cells = [inline(label), *(number(metric, value) for value in figures)]
    return [*cells, Markdown(str(len(values))), Markdown(_SHOWN[metric])]
