"""The table that a sweep ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from sweeper.deciding.drift import Drift, drift_of
from sweeper.deciding.fresh import before_confirming, compare, was_finalist
from sweeper.deciding.noise import noise_of
from sweeper.metrics import METRICS
from sweeper.naming import difference_text
from sweeper.objective import SCORE
from sweeper.records import TrialRecord
from sweeper.spec import ServerConfig
from sweeper.text import plain

NARROW = 70
"""Below so many columns the table keeps to what decides."""

_LEFT = "configuration"
_DECISIVE = 4
"""So many columns are always shown."""

_OPTIONAL = ("spread", "accept_len")

MISSING = "–"

_SPACE = 3
"""Around a column, in characters; the table has one more."""


def result_table(trials: Sequence[TrialRecord], objective: str, width: int = 80, asked: str = "") -> Table:
    """Every trial, fastest first, the baseline in bold; those without a score at the end with the reason.

    `asked`: the objective as it was written. Columns are left out, the last first, where the words of a
    configuration's name would otherwise not fit, and those that no trial has a value for.
    """
    baseline = next((t for t in trials if t.is_baseline), None)
    base_config = baseline.canonical if baseline else ServerConfig()
    base_value = baseline.mean(objective) if baseline else None
    ordered = sorted(trials, key=lambda t: (-(t.mean(objective) or 0.0), t.number))
    rows = [_row(trial, objective, base_config, base_value) for trial in ordered]
    named = rows[0] if rows else {}
    headings = [n for n in named if n not in _OPTIONAL or any(row[n] != MISSING for row in rows)]
    shown = headings[: _fitting(headings, rows, width)]
    table = Table(
        title=_title(objective, asked),
        title_justify="left",
        title_style="dim",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
    )
    for heading in shown:
        left = heading == _LEFT
        table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for trial, row in zip(ordered, rows, strict=True):
        table.add_row(*(Text(row[heading]) for heading in shown), style="bold" if trial.is_baseline else "")
    table.caption, table.caption_justify = _legend(trials, objective, shown), "left"
    return table


def _title(objective: str, asked: str) -> str:
    metric = METRICS[objective]
    unit = f" in {metric.unit}" if metric.unit else ""
    return f"{metric.label}{unit}: {metric.meaning}" + (f" ({asked})" if asked not in ("", objective) else "")


def _row(
    trial: TrialRecord, objective: str, base_config: ServerConfig, base_value: float | None
) -> Mapping[str, str]:
    """Column to text; the columns are those of every trial."""
    metric, value = METRICS[objective], trial.mean(objective)
    about = "≈ " if _is_estimated(trial) else ""
    name = "baseline" if trial.is_baseline else plain(difference_text(trial.canonical, base_config))
    marks = [*(["[lossy]"] if _is_lossy(trial) else []), *([f"[{trial.failure.kind}]"] if trial.failure else [])]
    return {
        "trial": str(trial.number),
        _LEFT: " ".join([name, *marks]),
        metric.unit or metric.label: f"{about}{metric.format(value)}" if value is not None else MISSING,
        "vs base": f"{about}{value / base_value:.2f} x" if value is not None and base_value else MISSING,
        "spread": _cell("repeat_spread_pct", trial, "%"),
        "accept_len": _cell("accept_length", trial),
        "launches": str(len(trial.measured)),
    }


def _fitting(headings: Sequence[str], rows: Sequence[Mapping[str, str]], width: int) -> int:
    """How many columns are shown: as many as leave room for the longest word of a name."""
    if width < NARROW:
        return _DECISIVE
    word = max((len(word) for row in rows for word in row[_LEFT].split()), default=0)
    widths = [max(len(heading), *(len(row[heading]) for row in rows)) for heading in headings if heading != _LEFT]
    for count in range(len(headings), _DECISIVE, -1):
        if sum(widths[: count - 1]) + max(word, len(_LEFT)) + _SPACE * count + 1 <= width:
            return count
    return _DECISIVE


def _legend(trials: Sequence[TrialRecord], objective: str, shown: Sequence[str]) -> str | None:
    """What the marks in the table mean, for those that are there, the noise of numbers, and their origin."""
    words = []
    if any(map(_is_estimated, trials)):
        words.append("≈: estimated, measuring ended early")
    if any(map(_is_lossy, trials)):
        words.append("lossy: may write other text than the baseline")
    if "spread" in shown:
        words.append("spread: between the passes of a launch")
    if noise := noise_of(trials, objective, _drift(trials, objective)).text:
        words.append(f"seen: {noise}")
    return (
        "\n".join(filter(None, ["; ".join(words), *_origins(trials, objective, "between" in noise, shown)]))
        or None
    )


def _origins(trials: Sequence[TrialRecord], objective: str, noisy: bool, shown: Sequence[str]) -> list[str]:
    """A line for each kind of number that is drawn from something else than a reader may think."""
    lines = []
    others = any(launch.others for trial in trials for launch in trial.launches)
    beside = [name for name in _OPTIONAL if name in shown] + (["passes, prompts"] if noisy else [])
    if objective == SCORE and others and beside:
        lines.append(f"of the first workload alone: {', '.join(beside)}")
    baseline = next((trial for trial in trials if trial.is_baseline), None)
    rivals = [trial for trial in trials if was_finalist(trial)]
    if baseline and compare(baseline, rivals, objective, before_confirming([baseline, *rivals], objective)):
        lines.append("means over all launches; the verdict counts fresh ones")
    return lines


def _drift(trials: Sequence[TrialRecord], objective: str) -> Drift:
    return drift_of([launch for trial in trials if trial.is_baseline for launch in trial.launches], objective)


def _is_estimated(trial: TrialRecord) -> bool:
    return any(launch.estimated for launch in trial.measured)


def _is_lossy(trial: TrialRecord) -> bool:
    return any(launch.lossy for launch in trial.launches)


def _cell(metric: str, trial: TrialRecord, unit: str = "") -> str:
    value = trial.mean(metric)
    return f"{METRICS[metric].format(value)} {unit}".strip() if value is not None else MISSING
