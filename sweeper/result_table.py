"""The table that a sweep ends with."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.records import TrialRecord
from sweeper.spec import ServerConfig
from sweeper.text import plain

NARROW = 70
"""Below so many columns the table keeps to what decides."""


def result_table(trials: Sequence[TrialRecord], objective: str, width: int = 80) -> Table:
    """Every trial, fastest first, the baseline in bold; those without a score at the end with the reason."""
    metric = METRICS[objective]
    baseline = next((t for t in trials if t.is_baseline), None)
    base_config = baseline.canonical if baseline else ServerConfig()
    base_value = baseline.mean(objective) if baseline else None
    title = f"{metric.label} in {metric.unit}: {metric.meaning}"
    table = Table(title=title, title_justify="left", title_style="dim", box=box.SIMPLE_HEAD, padding=(0, 1))
    headings = ["trial", "configuration", metric.unit, "vs base", "spread", "accept_len", "launches"]
    shown = len(headings) if width >= NARROW else 4
    for heading in headings[:shown]:
        left = heading == "configuration"
        table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for trial in sorted(trials, key=lambda t: -(t.mean(objective) or 0.0)):
        value = trial.mean(objective)
        name = "baseline" if trial.is_baseline else difference_text(trial.canonical, base_config)
        if trial.failure is not None:
            name = f"{name} [{trial.failure.kind}]"
        cells = (
            str(trial.number),
            Text(plain(name)),
            metric.format(value) if value is not None else "–",
            f"{value / base_value:.2f} x" if value is not None and base_value else "–",
            _cell("repeat_spread_pct", trial, "%"),
            _cell("accept_length", trial),
            str(len(trial.measured)),
        )
        table.add_row(*cells[:shown], style="bold" if trial.is_baseline else "")
    return table


def _cell(metric: str, trial: TrialRecord, unit: str = "") -> str:
    value = trial.mean(metric)
    return f"{METRICS[metric].format(value)} {unit}".strip() if value is not None else "–"
