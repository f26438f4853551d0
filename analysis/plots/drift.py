"""The baseline over the night: whether the host became faster or slower, and when GPUs were slowed down."""

from __future__ import annotations

import math

from analysis.blocks import Figure
from analysis.markup import Markdown, heading
from analysis.plots.chart import WIDTH, Chart, Dot, Line, symbol
from analysis.plots.scales import axis, time_unit
from analysis.reading import Reading
from sweeper.deciding.launches import usable
from sweeper.metrics import METRICS
from sweeper.records import LaunchRecord, duration_s

_HEIGHT = 220.0
_POWER_CAP = "sw_power_cap"


def drift(reading: Reading) -> list[Figure]:
    """The baseline's launches by the clock, with the line that the drift follows if there is one."""
    launches = [n for n in reading.by_number[0].measured if usable(n, reading.objective)]
    if len(launches) < 2 or reading.span is None:
        return []
    start = reading.span[0]
    at = {id(n): duration_s(start, n.started_at) for n in launches}
    unit, length = time_unit(max(at.values()))
    spread = reading.verdict.noise.expected_launch.pct / 100
    values = [n.metrics[reading.objective] for n in launches]
    middle = math.exp(sum(map(math.log, values)) / len(values))
    x = axis(unit, [0.0, max(at.values()) / length], (52, WIDTH - 12))
    y = axis(
        heading(reading.objective), [*values, middle * (1 - spread), middle * (1 + spread)], (_HEIGHT - 40, 24)
    )
    lines = [Line([(x.start, y.at(middle)), (x.end, y.at(middle))], "base dashed")]
    found = reading.verdict.drift
    if found.significant:
        level = math.exp(
            sum(math.log(n.metrics[reading.objective] / found.factor(n.started_at)) for n in launches)
            / len(launches)
        )
        ordered = sorted(launches, key=lambda launch: launch.started_at)
        ends = (ordered[0], ordered[-1])
        lines.append(
            Line([(x.at(at[id(n)] / length), y.at(level * found.factor(n.started_at))) for n in ends], "best")
        )
    dots = [
        Dot(
            x.at(at[id(n)] / length),
            y.at(n.metrics[reading.objective]),
            "failed" if _slowed(n) else "base",
            "square" if _slowed(n) else "diamond",
            _hint(reading, n),
        )
        for n in launches
    ]
    title = "The baseline over the night"
    words = found.text
    if slowed := sum(map(_slowed, launches)):
        words += f" In {slowed} of these launches a GPU was slowed down."
    chart = Chart("drift", title, words, _HEIGHT, x, y, (), lines, dots)
    legend = [(symbol("base", "diamond"), "a launch"), (symbol("base dashed", "line"), "mean")]
    legend += [(symbol("failed", "square"), "a GPU was slowed down")] if slowed else []
    legend += [(symbol("best", "line"), "drift")] if found.significant else []
    return [Figure(Markdown(title), Markdown(words), chart.svg, legend)]


def _slowed(launch: LaunchRecord) -> bool:
    """Whether a GPU was slower than it can be for another reason than its power limit."""
    return any(share > 0 for reason, share in launch.gpu.throttled.items() if reason != _POWER_CAP)


def _hint(reading: Reading, launch: LaunchRecord) -> str:
    row = METRICS[reading.objective]
    value = f"{row.format(launch.metrics[reading.objective])} {row.unit}".rstrip()
    return f"launch {launch.launch_number}, {launch.purpose.value}: {value}"
