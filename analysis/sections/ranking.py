"""The part of the report that shows all configurations in order, each with the launches behind its number."""

from __future__ import annotations

import pandas as pd

from analysis.blocks import Block, Cell, Folded, Paragraph, Section, Table
from analysis.frames import ranking
from analysis.markup import ESTIMATES, MISSING, Markdown, bold, count, heading, inline, number, trials
from analysis.plots.intervals import intervals
from analysis.reading import Reading
from sweeper.objective import SCORE
from sweeper.records import LaunchRecord, TrialState

MAX_RANKED = 30
"""So many trials are ranked where there is little room."""

MAX_ROWS = 1000
"""So many are ranked where there is much; the frames hold all of them."""

MAX_LAUNCHES = 12
"""So many launches are listed behind a trial's number."""

FEW_STEPS = 20
"""An accept_len that is drawn from fewer verify steps a launch says so."""

_SHOWN = ("accept_length", "ttft_ms", "tpot_ms")


def ranked(reading: Reading) -> Section:
    """The measured trials, best first, and the baseline among them."""
    frame = ranking(reading.trials, reading.objective)
    scored = frame[frame["rank"].notna()]
    if scored.empty:
        return Section("Ranking", [Paragraph(Markdown("No configuration has been measured yet."))])
    kept = scored[(scored["rank"] <= MAX_ROWS) | scored["is_baseline"]].reset_index(drop=True)
    extra = frozenset(kept.index[(kept["rank"] > MAX_RANKED) & ~kept["is_baseline"]])
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
    table = Table(
        Markdown("All measured configurations, best first"),
        columns,
        [_ranked_row(reading, row) for _, row in kept.iterrows()],
        anchors=[f"trial-{number_of}" for number_of in kept["number"]],
        extra=extra,
        total=len(scored),
        noun="slower trial",
    )
    blocks: list[Block] = [Paragraph(_words(reading, kept)), *intervals(reading), table]
    return Section("Ranking", [*blocks, *_notes(reading)])


def _words(reading: Reading, kept: pd.DataFrame) -> Markdown:
    """What the columns mean, as far as they do not say so themselves."""
    words = "Means over all measured launches of a trial. Spread: between the passes of a launch."
    if kept["is_estimated"].any():
        words += f" {ESTIMATES}"
    if reading.verdict.confirmed:
        words += " The verdict uses the fresh launches alone, so its numbers differ a little."
    if any(_has_few_steps(row) for _, row in kept.iterrows()):
        words += " Steps: an accept_len drawn from so few verify steps in a launch is hardly known."
    return Markdown(words)


def _notes(reading: Reading) -> list[Block]:
    """What stands below the table: whose numbers these are, and which trials have none."""
    notes: list[str] = []
    if reading.objective == SCORE and any(launch.others for launch in reading.measured):
        beside = "Spread, accept_len, TTFT and TPOT are those of the first workload alone"
        notes.append(f"{beside}, {inline(reading.first_workload)}.")
    if without := [*reading.in_state(TrialState.INFEASIBLE), *reading.in_state(TrialState.FAILED)]:
        notes.append(f"Without a score: {trials(sorted(without))}.")
    definitions = dict.fromkeys(
        launch.accept_definition for launch in reading.launches if launch.accept_definition
    )
    if definitions:
        notes.append(f"accept_len: {inline('; '.join(definitions), 600)}.")
    return [Paragraph(Markdown(note)) for note in notes]


def _ranked_row(reading: Reading, row: pd.Series) -> list[Cell]:
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
    shown = [bold(text) for text in cells] if row["is_baseline"] else cells
    return [*shown[:-1], Folded(shown[-1], _behind(reading, int(row["number"])))]


def _behind(reading: Reading, number_of: int) -> list[Markdown]:
    """A line per launch of a trial: why it was made, what it did, and what its passes did."""
    launches = reading.by_number[number_of].measured
    lines = [_launch_line(reading, launch) for launch in launches[:MAX_LAUNCHES]]
    left = len(launches) - MAX_LAUNCHES
    return [*lines, Markdown(f"{left} more")] if left > 0 else lines


def _launch_line(reading: Reading, launch: LaunchRecord) -> Markdown:
    value = number(
        reading.objective, launch.metrics.get(reading.objective), unit=True, estimated=bool(launch.estimated)
    )
    passes = ", ".join(number("output_throughput", value) for value in launch.repeat_throughputs[:MAX_LAUNCHES])
    return Markdown(
        f"launch {launch.launch_number} ({launch.purpose.value}): {value}{f'; passes {passes}' if passes else ''}"
    )


def _has_few_steps(row: pd.Series) -> bool:
    steps = row["num_verify_steps"]
    return not pd.isna(row["accept_length"]) and not pd.isna(steps) and float(steps) < FEW_STEPS


def _few_steps(accept_length: Markdown, row: pd.Series) -> Markdown:
    """`9.67 (3 steps)`, where it is drawn from few."""
    if not _has_few_steps(row):
        return accept_length
    return Markdown(f"{accept_length} ({count(max(1, round(float(row['num_verify_steps']))), 'step')})")
