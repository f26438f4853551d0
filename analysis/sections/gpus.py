"""The part of the report on the GPUs while launches were measured; nothing where no nvidia-smi was seen."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import lru_cache

from analysis.blocks import Block, Bullets, Paragraph, Section, Table
from analysis.markup import MISSING, Markdown, count, inline
from analysis.reading import Reading
from sweeper.records import GpuWindow, LaunchRecord

MAX_LINES = 20

Key = tuple[int, int]
"""A GPU: the place of its host among the server's, and its index there."""

_POWER_CAP = "sw_power_cap"


def gpus(reading: Reading) -> Section | None:
    """Clocks, temperature and power per GPU over all launches, what slowed GPUs down, and who else used them."""
    seen = [launch for launch in reading.launches if launch.gpu.num_samples]
    if not seen:
        return None
    samples = sum(launch.gpu.num_samples for launch in seen)
    words = f"nvidia-smi was asked {count(samples, 'time')} while {count(len(seen), 'launch')} were measured."
    keys = sorted({key for launch in seen for key in _places(launch.gpu.gpus)})
    columns = {
        "GPU": "r",
        "SM clock (MHz): mean": "r",
        "lowest": "r",
        "temperature (°C): mean": "r",
        "highest": "r",
        "power (W): mean": "r",
    }
    rows = [_gpu_row(key, [launch.gpu for launch in seen]) for key in keys]
    table = Table(
        Markdown("Clocks, temperature and power of each GPU while launches were measured"), columns, rows
    )
    blocks: list[Block] = [Paragraph(Markdown(words)), table, _throttling(seen), _others(seen)]
    return Section("GPUs", [*blocks, *_notes(seen)])


@lru_cache(maxsize=256)
def _places(gpus: tuple[int, ...]) -> dict[Key, int]:
    """Where each GPU's numbers are; where a server spans several hosts, an index comes once per host."""
    return {(gpus[:place].count(index), index): place for place, index in enumerate(gpus)}


def _gpu_row(key: Key, windows: Sequence[GpuWindow]) -> list[Markdown]:
    def values(field: str) -> list[float]:
        found = ((_places(window.gpus).get(key), getattr(window, field)) for window in windows)
        return [numbers[place] for place, numbers in found if place is not None and place < len(numbers)]

    def cell(numbers: Sequence[float]) -> Markdown:
        return Markdown(f"{numbers[0]:,.0f}") if numbers else MISSING

    def mean(field: str) -> Markdown:
        return cell([statistics.fmean(found)] if (found := values(field)) else [])

    return [
        Markdown(f"{key[1]} of node {key[0]}" if key[0] else str(key[1])),
        mean("sm_clock_mhz"),
        cell(sorted(values("lowest_sm_clock_mhz"))),
        mean("temperature_c"),
        cell(sorted(values("highest_temperature_c"), reverse=True)),
        mean("power_w"),
    ]


def _throttling(launches: Sequence[LaunchRecord]) -> Block:
    """Each reason with the launches that show it and its largest share of the samples; the largest first."""
    found: dict[str, list[float]] = {}
    for launch in launches:
        for reason, share in launch.gpu.throttled.items():
            found.setdefault(reason, []).append(share)
    if not found:
        return Paragraph(Markdown("No reason was told for which a GPU was slower than it can be."))
    order = sorted(found.items(), key=lambda item: (-max(item[1]), item[0]))
    return Bullets(
        [
            Markdown(
                f"{'at its power limit, as under load it may be' if reason == _POWER_CAP else 'slowed down'} "
                f"({inline(reason)}): in {count(len(shares), 'launch')} of {len(launches)}, at most "
                f"{100 * max(shares):.0f} % of a launch's samples"
            )
            for reason, shares in order[:MAX_LINES]
        ]
    )


def _others(launches: Sequence[LaunchRecord]) -> Block:
    """Who else held memory of the GPUs, with the launch that saw it."""
    lines = [
        Markdown(
            f"somebody else used a GPU during trial {launch.trial_number}, launch {launch.launch_number}: "
            f"{inline('; '.join(launch.gpu.others), 600)}"
        )
        for launch in launches
        if launch.gpu.others
    ]
    if not lines:
        return Paragraph(Markdown("Nobody else was seen on them."))
    left = len(lines) - MAX_LINES
    more = [Markdown(f"{left} more such launches left out")] if left > 0 else []
    return Bullets([*lines[:MAX_LINES], *more])


def _notes(launches: Sequence[LaunchRecord]) -> list[Block]:
    """What is worth knowing besides, each once."""
    notes = list(dict.fromkeys(note for launch in launches for note in launch.gpu.notes))[:MAX_LINES]
    return [Bullets([inline(note, 300) for note in notes])] if notes else []
