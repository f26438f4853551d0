"""The part of the report on prompts: baseline and best configuration side by side, by prompt and by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from analysis.blocks import Block, Paragraph, Section, Table
from analysis.markup import Markdown, count, heading, inline, number
from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.records import LaunchRecord, TrialRecord

MAX_PROMPTS = 40

Throughputs = Callable[[LaunchRecord], Mapping[str, float]]


def prompts(reading: Reading) -> Section | None:
    """Paired with the baseline, prompt by prompt and kind by kind; the largest gain first."""
    rival = reading.rival
    if rival is None:
        return None
    pairs = _pairs(reading, rival, lambda launch: launch.prompt_throughputs)
    if not pairs:
        return None
    faster = sum(1 for theirs, ours in pairs.values() if ours > theirs)
    words = (
        f"Trial {rival.number} is faster on {faster} of {count(len(pairs), 'prompt')}. Means over all launches; "
        "each prompt is compared with itself."
    )
    blocks: list[Block] = [Paragraph(Markdown(words)), _paired_table("prompt", rival, pairs)]
    if (left := len(pairs) - MAX_PROMPTS) > 0:
        blocks.append(Paragraph(Markdown(f"{left} more prompts left out.")))
    kinds = _pairs(reading, rival, lambda launch: launch.class_throughputs)
    if len(kinds) > 1:
        blocks.append(Paragraph(Markdown("By kind of prompt, all tokens of a kind over all its time:")))
        blocks.append(_paired_table("kind", rival, kinds))
    return Section("Prompt by prompt", blocks)


def _pairs(reading: Reading, rival: TrialRecord, of: Throughputs) -> dict[str, tuple[float, float]]:
    """The baseline's and the rival's throughput of what both measured; the largest gain first, then by name."""
    theirs, ours = _means(reading.by_number[0], of), _means(rival, of)
    pairs = {name: (theirs[name], ours[name]) for name in ours if theirs.get(name)}
    return dict(sorted(pairs.items(), key=lambda item: (-item[1][1] / item[1][0], item[0])))


def _means(trial: TrialRecord, of: Throughputs) -> dict[str, float]:
    """Output tokens per second, the mean over the measured launches that have it."""
    found: dict[str, list[float]] = {}
    for launch in trial.measured:
        for name, value in of(launch).items():
            found.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in found.items()}


def _paired_table(title: str, rival: TrialRecord, pairs: Mapping[str, tuple[float, float]]) -> Table:
    rows: list[list[Markdown]] = [
        [
            inline(name),
            number("output_throughput", theirs),
            number("output_throughput", ours),
            number("speedup", ours / theirs),
        ]
        for name, (theirs, ours) in list(pairs.items())[:MAX_PROMPTS]
    ]
    unit = METRICS["output_throughput"].unit
    columns = {title: "l", f"baseline ({unit})": "r", f"trial {rival.number} ({unit})": "r"}
    caption = Markdown(f"Baseline and trial {rival.number} side by side, by {title}")
    return Table(caption, {**columns, heading("speedup"): "r"}, rows)
