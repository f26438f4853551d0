"""The part of the report on several hosts: what each of them measured, before it is put on one scale."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.blocks import Block, Paragraph, Section, Table
from analysis.frames import ranking
from analysis.markup import MISSING, Markdown, bold, inline, number
from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.records import LaunchRecord

MAX_HOSTS = 8
"""So many hosts have a column each; of more there is one with the names of a trial's."""

MAX_ROWS = 30
"""So many trials are shown where there is little room."""


def hosts(reading: Reading) -> Section | None:
    """A column per host, the trials best first; None where a single one has measured."""
    if len(reading.hosts) < 2:
        return None
    frame = ranking(reading.trials, reading.objective)
    kept = frame[frame["rank"].notna() | frame["is_baseline"]].reset_index(drop=True)
    rows = [
        _row(reading, int(row["number"]), row["name"], is_baseline=row["is_baseline"])
        for _, row in kept.iterrows()
    ]
    words = "Only here each host has a column: the mean of its launches, as they were measured there."
    table = Table(
        Markdown("What each host measured"),
        {"trial": "r", "configuration": "l", **_columns(reading)},
        rows,
        extra=frozenset(kept.index[(kept.index >= MAX_ROWS) & ~kept["is_baseline"]]),
        total=len(kept),
        noun="slower trial",
    )
    scale = [Paragraph(inline(reading.verdict.scale, 600))] if reading.verdict.scale else []
    blocks: list[Block] = [*scale, Paragraph(Markdown(words)), table]
    return Section("Hosts", blocks)


def _columns(reading: Reading) -> dict[str, str]:
    if len(reading.hosts) > MAX_HOSTS:
        return {"hosts": "l"}
    unit = METRICS[reading.objective].unit
    return {f"{inline(host, 40)}{f' ({unit})' if unit else ''}": "r" for host in reading.hosts}


def _row(reading: Reading, number_of: int, name: object, *, is_baseline: bool) -> list[Markdown]:
    launches = [n for n in reading.measured if n.trial_number == number_of and reading.objective in n.metrics]
    by_host = {host: [n for n in launches if n.host == host] for host in reading.hosts}
    if len(by_host) > MAX_HOSTS:
        names = ", ".join(inline(host, 40) for host, own in by_host.items() if own)
        told = [Markdown(names) if names else MISSING]
    else:
        told = [_mean_of(reading.objective, own) for own in by_host.values()]
    cells = [Markdown(str(number_of)), inline(name), *told]
    return [bold(cell) for cell in cells] if is_baseline else cells


def _mean_of(objective: str, launches: Sequence[LaunchRecord]) -> Markdown:
    mean = statistics.fmean(n.metrics[objective] for n in launches) if launches else None
    return number(objective, mean, estimated=any(n.estimated for n in launches))
