"""What a run says of itself in MLflow: a description, and a colour that has a meaning in every chart. Pure."""

from __future__ import annotations

from sweeper.metrics import METRICS
from sweeper.records import TrialRecord, TrialState
from sweeper.statistics.stats import spread_pct

BASELINE_COLOR, FASTER_COLOR, SLOWER_COLOR, OTHER_COLOR = "#000000", "#1f77b4", "#ff9f40", "#9e9e9e"
_FILES = (
    ("command.txt", "how each launch was started, to be pasted into a shell"),
    ("requests.json", "every measured request, as a table"),
    ("launch-N-server.log", "the server's own log"),
    ("record.json", "everything that is kept of the trial"),
)


def color(trial: TrialRecord, baseline: TrialRecord | None, objective: str) -> str:
    """Black for the baseline, blue for what did more, orange for less, grey for what cannot be compared."""
    if trial.is_baseline:
        return BASELINE_COLOR
    value = trial.mean(objective) if trial.state is TrialState.COMPLETE else None
    reference = baseline.mean(objective) if baseline else None
    if value is None or reference is None:
        return OTHER_COLOR
    return FASTER_COLOR if (value > reference) == (METRICS[objective].better == "higher") else SLOWER_COLOR


def note(trial: TrialRecord, baseline: TrialRecord | None, objective: str) -> str:
    """Markdown: what the trial did against the baseline, in how many launches, and what its files are."""
    lines = [_result(trial, baseline, objective)]
    if trial.forecast is not None and trial.forecast.reason:
        lines.append(f"Tried because: {' '.join(trial.forecast.reason.split())}")
    files = [f"- `{name}`: {meaning}" for name, meaning in _FILES]
    return "\n\n".join([*lines, "\n".join(["Its files, under Artifacts:", "", *files])])


def _result(trial: TrialRecord, baseline: TrialRecord | None, objective: str) -> str:
    value, count = trial.mean(objective), len(trial.measured)
    if value is None:
        return "Not measured."
    metric = METRICS[objective]
    words = f"**{metric.format(value)} {metric.unit}**".replace(" **", "**")
    reference = baseline.mean(objective) if baseline else None
    if trial.is_baseline:
        words += ": the baseline, the configuration without speculative decoding"
    elif reference:
        words += f", {value / reference:.3f} times the baseline's {metric.format(reference)}"
    launches = [launch.metrics[objective] for launch in trial.measured if objective in launch.metrics]
    spread = spread_pct(launches)
    apart = f", {spread:.1f} % apart" if spread is not None else ""
    if count == 1:
        return f"{words} (one launch, which alone is no proof)."
    return f"{words} ({count} launches{apart})."
