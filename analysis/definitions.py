"""The report's last part: what the numbers in its tables mean."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.markup import heading
from sweeper.metrics import METRICS, Metric


def definitions(lines: Iterable[str]) -> list[str]:
    """One line per metric that stands in a table among `lines`: as the title of a column, or first in a row."""
    titles = {cell.strip() for line in lines if line.startswith("| ") for cell in line.split("|")}
    titles |= {title.rpartition(": ")[2] for title in titles}
    shown = [f"- {_line(metric)}" for metric in METRICS.values() if heading(metric.name) in titles]
    return ["## What the numbers mean", "", *shown] if shown else []


def _line(metric: Metric) -> str:
    unit = f", in {metric.unit}" if metric.unit else ""
    return f"{metric.label} (`{metric.name}`{unit}): {metric.meaning}"
