"""The report's last part: what the numbers in its tables mean."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.blocks import Bullets, Folded, Section
from analysis.markup import Markdown, heading
from sweeper.metrics import METRICS, Metric


def definitions(sections: Iterable[Section]) -> Section | None:
    """One line per metric that stands in a table: as the title of a column, or first in a row."""
    titles: set[str] = set()
    for table in (table for section in sections for table in section.tables()):
        titles |= set(table.columns)
        titles |= {first.summary if isinstance(first, Folded) else first for first, *_ in table.rows}
    titles |= {title.rpartition(": ")[2] for title in titles}
    shown = [_line(metric) for metric in METRICS.values() if heading(metric.name) in titles]
    return Section("What the numbers mean", [Bullets(shown)], folded=True) if shown else None


def _line(metric: Metric) -> Markdown:
    unit = f", in {metric.unit}" if metric.unit else ""
    return Markdown(f"{metric.label} (`{metric.name}`{unit}): {metric.meaning}")
