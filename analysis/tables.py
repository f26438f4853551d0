"""The second part of the report: all configurations in order."""

from __future__ import annotations

import pandas as pd

from analysis.frames import ranking
from analysis.markup import ESTIMATES, MISSING, Markdown, bold, count, heading, inline, number, table, trials
from analysis.reading import Reading
from sweeper.objective import SCORE
from sweeper.records import TrialState

MAX_RANKED = 30
"""So many trials are ranked in the report; the frames hold all of them."""

FEW_STEPS = 20
"""An accept_len that is drawn from fewer verify steps a launch says so."""

_SHOWN = ("accept_length", "ttft_ms", "tpot_ms")


def ranked(reading: Reading) -> list[str]:
    """The best trials and the baseline, best first."""
    frame = ranking(reading.trials, reading.objective)
    scored = frame[frame["rank"].notna()]
    if scored.empty:
        return ["## Ranking", "", "No configuration has been measured yet."]
    kept = scored[(scored["rank"] <= MAX_RANKED) | scored["is_baseline"]]
    columns = {
        "rank": "r",
        "trial": "r",
        "configuration": "l",
        heading(reading.objective): "r",
        heading("speedup"): "r",
        heading("repeat_spread_pct"): "r",
        **{heading(name): "r" for name in _SHOWN},
        "launches": "r",
    }
    rows = [_ranked_row(reading, row) for _, row in kept.iterrows()]
    lines = [
        "## Ranking",
        "",
        "Means over all measured launches of a trial. Spread: between the passes of a launch.",
    ]
    if kept["is_estimated"].any():
        lines[-1] += f" {ESTIMATES}"
    if reading.verdict.confirmed:
        lines[-1] += " The verdict uses the fresh launches alone, so its numbers differ a little."
    if any(_has_few_steps(row) for _, row in kept.iterrows()):
        lines[-1] += " Steps: an accept_len drawn from so few verify steps in a launch is hardly known."
    lines += ["", *table(columns, rows)]
    if reading.objective == SCORE and any(launch.others for launch in reading.measured):
        beside = "Spread, accept_len, TTFT and TPOT are those of the first workload alone"
        lines += ["", f"{beside}, {inline(reading.first_workload)}."]
    if left := len(scored) - len(kept):
        lines += ["", f"{count(left, 'slower trial')} left out."]
    if without := [*reading.in_state(TrialState.INFEASIBLE), *reading.in_state(TrialState.FAILED)]:
        lines += ["", f"Without a score: {trials(sorted(without))}."]
    return lines


def _ranked_row(reading: Reading, row: pd.Series) -> list[Markdown]:
    def cell(metric: str, column: str, *, estimated: bool = False) -> Markdown:
        return number(metric, None if pd.isna(row[column]) else float(row[column]), estimated=estimated)

    guess = bool(row["is_estimated"])

    cells = [
        Markdown(str(row["rank"])),
        Markdown(str(row["number"])),
        MISSING if pd.isna(row["name"]) else inline(f"{row['name']}{' [lossy]' if row['is_lossy'] else ''}"),
        cell(reading.objective, "value", estimated=guess),
        cell("speedup", "speedup", estimated=guess),
        cell("repeat_spread_pct", "spread_pct"),
        *(_few_steps(cell(name, name), row) if name == "accept_length" else cell(name, name) for name in _SHOWN),
        Markdown(str(row["num_launches"])),
    ]
    return [bold(text) for text in cells] if row["is_baseline"] else cells


def _has_few_steps(row: pd.Series) -> bool:
    steps = row["num_verify_steps"]
    return not pd.isna(row["accept_length"]) and not pd.isna(steps) and float(steps) < FEW_STEPS


def _few_steps(accept_length: Markdown, row: pd.Series) -> Markdown:
    """`9.67 (3 steps)`, where it is drawn from few."""
    if not _has_few_steps(row):
        return accept_length
    return Markdown(f"{accept_length} ({count(max(1, round(float(row['num_verify_steps']))), 'step')})")
