"""Values with their intervals, one row each, against a line of reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.plots.chart import WIDTH, Chart, Dot, Label, Line, fitted, text_width
from analysis.plots.scales import axis

ROW = 18.0
MAX_LABEL = 0.52 * WIDTH
"""Pixels for a row's name; the hint over its dot has all of it."""


@dataclass(frozen=True)
class Row:
    """`value` with its interval, if that is known. Without a value it is the title of the rows below."""

    name: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    kind: str = "k0"
    shape: str = "circle"
    hint: str = ""


@dataclass(frozen=True)
class Frame:
    """What stands around the rows: the drawing's key, its title, what it shows, the label of the values."""

    key: str
    title: str
    description: str
    label: str


def forest(rows: Sequence[Row], frame: Frame, reference: float | None = None) -> Chart:
    """The rows from top to bottom. `reference` is drawn as a dashed line."""
    names = [fitted(row.name, MAX_LABEL, bold=row.kind == "base") for row in rows]
    widths = [
        text_width(name, bold=row.kind == "base")
        for row, name in zip(rows, names, strict=True)
        if row.value is not None
    ]
    left = 12 + max(widths, default=0)
    values = [v for row in rows for v in (row.value, row.low, row.high) if v is not None]
    scale = axis(
        frame.label, values if reference is None else [*values, reference], (left, WIDTH - 12), num_ticks=4
    )
    bottom = ROW * len(rows) + 10
    lines = (
        []
        if reference is None
        else [Line([(scale.at(reference), 4), (scale.at(reference), bottom)], "base dashed")]
    )
    dots, labels = [], []
    for index, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = ROW * (index + 0.5) + 4
        if row.value is None:
            labels.append(Label(2, y + 4, fitted(row.name, WIDTH - 4, bold=True), kind="group"))
            continue
        labels.append(Label(left - 8, y + 4, name, "end", "base" if row.kind == "base" else ""))
        if row.low is not None and row.high is not None:
            ends = scale.at(row.low), scale.at(row.high)
            lines.append(Line([(ends[0], y), (ends[1], y)], f"{row.kind} whisker"))
        dots.append(Dot(scale.at(row.value), y, row.kind, row.shape, row.hint))
    return Chart(frame.key, frame.title, frame.description, bottom + 36, scale, None, (), lines, dots, labels)
