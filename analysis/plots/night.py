"""How the night was spent: what was measured, what restarts took, what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.blocks import Figure
from analysis.markup import Markdown, duration
from analysis.plots.chart import WIDTH, Bar, Chart, Label, symbol, text_width
from analysis.plots.scales import axis, time_unit
from analysis.reading import Reading
from sweeper.records import LaunchRecord, Purpose, duration_s

PARTS = {
    "measuring": "useful",
    "warm-up": "warm",
    "start and stop": "restart",
    "failed launches": "lost",
    "between and within launches": "idle",
}
"""What time is spent on, and the class of its colour."""

_PHASES = {"benchmark": "measuring", "warmup": "warm-up", "start": "start and stop", "stop": "start and stop"}
_ROW = 34.0
_WHOLE = "whole night"


def night(reading: Reading) -> list[Figure]:
    """A bar for the whole night, and one for each reason to launch."""
    if not reading.launches or not reading.wall_clock_s:
        return []
    rows = {_WHOLE: spent(reading.launches, reading.wall_clock_s)}
    for purpose in Purpose:
        if made := [launch for launch in reading.launches if launch.purpose is purpose]:
            rows[purpose.value] = spent(made, sum(map(_length, made)))
    return [_drawn(rows)]


def spent(launches: Sequence[LaunchRecord], whole_s: float) -> dict[str, float]:
    """Seconds by what they were spent on, of `whole_s` in all."""
    found = dict.fromkeys(PARTS, 0.0)
    for launch in launches:
        if not launch.ok:
            found["failed launches"] += _length(launch)
            continue
        for phase in launch.phases:
            if phase.name in _PHASES:
                found[_PHASES[phase.name]] += phase.duration_s
    return {**found, "between and within launches": max(0.0, whole_s - sum(found.values()))}


def _drawn(rows: Mapping[str, Mapping[str, float]]) -> Figure:
    longest = max(sum(parts.values()) for parts in rows.values())
    unit, length = time_unit(longest)
    x = axis(unit, [0.0, longest / length], (14 + text_width(_WHOLE), WIDTH - 12))
    bars, labels = [], []
    for index, (name, parts) in enumerate(rows.items()):
        y, start = _ROW * index + 8, 0.0
        labels.append(Label(x.start - 8, y + 15, name, "end"))
        for part, seconds in parts.items():
            left, right = x.at(start / length), x.at((start + seconds) / length)
            start += seconds
            if right > left:
                hint = f"{name}: {part} {duration(seconds)}"
                bars.append(Bar(left, y, round(right - left, 1), 22, PARTS[part], hint))
    title = "How the night was spent"
    whole = rows[_WHOLE]
    total = sum(whole.values())
    shares = ", ".join(f"{part} {100 * seconds / total:.0f} %" for part, seconds in whole.items() if seconds > 0)
    words = f"Of {duration(total)} from the first start to the last stop: {shares}."
    used = [part for part in PARTS if any(parts[part] > 0 for parts in rows.values())]
    chart = Chart("night", title, words, _ROW * len(rows) + 42, x, None, bars, (), (), labels)
    return Figure(Markdown(title), Markdown(words), chart.svg, [(symbol(PARTS[p], "bar"), p) for p in used])


def _length(launch: LaunchRecord) -> float:
    return duration_s(launch.started_at, launch.ended_at)
