"""The part of the report on noise: what numbers differ by that ought to be equal, and whether the host drifted."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.blocks import Block, Paragraph, Section, Table
from analysis.markup import MISSING, Markdown, count, heading, inline, moment, number
from analysis.plots.drift import drift as drift_figure
from analysis.reading import Reading
from sweeper.deciding.launches import usable
from sweeper.deciding.noise import Spread
from sweeper.objective import SCORE
from sweeper.records import LaunchRecord

MAX_LAUNCHES = 40


def noise(reading: Reading) -> Section | None:
    """The separate spreads, then the baseline's launches over the night and what they say of drift."""
    if reading.verdict.baseline_value is None:
        return None
    seen, drift = reading.verdict.noise, reading.verdict.drift
    expected = seen.expected_launch.pct
    rows = [
        _row("from one start to the next", seen.launches, "the same configuration; what a verdict weighs"),
        _row("between the passes of a launch", seen.passes, "says nothing about the next start"),
        _row("between the prompts of a launch", seen.prompts, "texts differ, servers do not: no noise"),
        _row("of a prompt's ratio to the baseline", seen.prompt_ratios, "some texts are easier to draft"),
    ]
    words = "Standard deviations, in percent of the value. " + (
        "Seen from the launches made so far, the next start of the same configuration is expected to differ by "
        f"{expected:.1f} %."
        if seen.launches
        else f"Nothing was launched twice: that starts of one configuration differ by {expected:.1f} % is assumed."
    )
    if reading.objective == SCORE and any(launch.others for launch in reading.measured):
        words += f" Passes and prompts are those of the first workload alone, {inline(reading.first_workload)}."
    columns = {"what differs": "l", "by (%)": "r", "degrees of freedom": "r", "note": "l"}
    table = Table(Markdown("By how much numbers differ that ought to be equal"), columns, rows)
    seen_over_time: list[Block] = [*drift_figure(reading)] or [Paragraph(inline(drift.text))]
    blocks = [Paragraph(Markdown(words)), table, *seen_over_time, *_over_time(reading)]
    return Section("Noise and drift", blocks)


def _row(label: str, spread: Spread | None, note: str) -> list[Markdown]:
    if spread is None:
        return [Markdown(label), MISSING, MISSING, Markdown("nothing was seen twice")]
    return [Markdown(label), Markdown(f"{spread.pct:.2f}"), Markdown(str(spread.degrees)), Markdown(note)]


def _over_time(reading: Reading) -> list[Block]:
    """The baseline's launches that may be compared, in the order of their start, each against their mean."""
    metric = reading.objective
    launches = [n for n in reading.by_number[0].measured if usable(n, metric)]
    launches.sort(key=lambda launch: launch.started_at)
    if len(launches) < 2:
        return []
    mean = statistics.fmean(launch.metrics[metric] for launch in launches)
    columns = {"launch": "r", "why": "l", "started (UTC)": "l", heading(metric): "r", "against the mean (%)": "r"}
    rows = [_launch_row(launch, metric, mean) for launch in launches]
    caption = Markdown("The baseline's launches in the order of their start")
    blocks: list[Block] = [Table(caption, columns, _thinned(rows), folded=True)]
    if (left := len(rows) - MAX_LAUNCHES) > 0:
        blocks.append(Paragraph(Markdown(f"{count(left, 'launch')} in between left out.")))
    return blocks


def _thinned(rows: Sequence[list[Markdown]]) -> list[list[Markdown]]:
    """The first and the last ones, of very many."""
    half = MAX_LAUNCHES // 2
    return [*rows] if len(rows) <= MAX_LAUNCHES else [*rows[:half], *rows[-half:]]


def _launch_row(launch: LaunchRecord, metric: str, mean: float) -> list[Markdown]:
    value = launch.metrics[metric]
    return [
        Markdown(str(launch.launch_number)),
        Markdown(launch.purpose.value),
        moment(launch.started_at),
        number(metric, value),
        Markdown(f"{100 * (value / mean - 1):+.1f}"),
    ]
