"""The second part of the report: all configurations in order, and the best one prompt by prompt."""

from __future__ import annotations

import pandas as pd

from analysis.frames import ranking
from analysis.markup import MISSING, Markdown, bold, count, heading, inline, number, table, trials
from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.records import TrialRecord, TrialState

MAX_RANKED = 30
"""So many trials are ranked in the report; the frames hold all of them."""

MAX_PROMPTS = 40

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
    if reading.verdict.confirmed:
        lines[-1] += " The verdict uses the fresh launches alone, so its numbers differ a little."
    lines += ["", *table(columns, rows)]
    if left := len(scored) - len(kept):
        lines += ["", f"{count(left, 'slower trial')} left out."]
    if without := [*reading.in_state(TrialState.INFEASIBLE), *reading.in_state(TrialState.FAILED)]:
        lines += ["", f"Without a score: {trials(sorted(without))}."]
    return lines


def _ranked_row(reading: Reading, row: pd.Series) -> list[Markdown]:
    def cell(metric: str, column: str) -> Markdown:
        return number(metric, None if pd.isna(row[column]) else float(row[column]))

    cells = [
        Markdown(str(row["rank"])),
        Markdown(str(row["number"])),
        MISSING if pd.isna(row["name"]) else inline(row["name"]),
        cell(reading.objective, "value"),
        cell("speedup", "speedup"),
        cell("repeat_spread_pct", "spread_pct"),
        *(cell(name, name) for name in _SHOWN),
        Markdown(str(row["num_launches"])),
    ]
    return [bold(text) for text in cells] if row["is_baseline"] else cells


def prompts(reading: Reading) -> list[str]:
    """Baseline and best configuration side by side, prompt by prompt; the largest gain first."""
    rival = reading.rival
    if rival is None:
        return []
    theirs, ours = _per_prompt(reading.by_number[0]), _per_prompt(rival)
    ratios = {prompt: ours[prompt] / theirs[prompt] for prompt in ours if theirs.get(prompt)}
    order = sorted(ratios, key=lambda prompt: -ratios[prompt])
    if not order:
        return []
    rows = [
        [
            inline(prompt),
            number("output_throughput", theirs[prompt]),
            number("output_throughput", ours[prompt]),
            number("speedup", ratios[prompt]),
        ]
        for prompt in order[:MAX_PROMPTS]
    ]
    faster = sum(1 for ratio in ratios.values() if ratio > 1)
    unit = METRICS["output_throughput"].unit
    columns = {"prompt": "l", f"baseline ({unit})": "r", f"trial {rival.number} ({unit})": "r"}
    lines = [
        "## Prompt by prompt",
        "",
        f"Trial {rival.number} is faster on {faster} of {count(len(order), 'prompt')}. Means over all launches.",
        "",
        *table({**columns, heading("speedup"): "r"}, rows),
    ]
    return (
        [*lines, "", f"{len(order) - MAX_PROMPTS} more prompts left out."] if len(order) > MAX_PROMPTS else lines
    )


def _per_prompt(trial: TrialRecord) -> dict[str, float]:
    """Prompt id to output tokens per second, the mean over the measured launches that have it."""
    found: dict[str, list[float]] = {}
    for launch in trial.measured:
        for prompt, value in launch.prompt_throughputs.items():
            found.setdefault(prompt, []).append(value)
    return {prompt: sum(values) / len(values) for prompt, values in found.items()}
