"""Shares of a whole, a bar each."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.plots.chart import WIDTH, Bar, Chart, Label, fitted, text_width
from analysis.plots.forest import MAX_LABEL
from analysis.plots.scales import axis

_ROW = 22.0


def bars(shares: Mapping[str, float], key: str, title: str, description: str) -> Chart:
    """`shares`: name to percent, drawn in their order."""
    names = [fitted(name, MAX_LABEL) for name in shares]
    left = 12 + max(map(text_width, names))
    x = axis("%", [0.0, *shares.values()], (left, WIDTH - 12), num_ticks=4)
    drawn, labels = [], []
    for index, (name, share) in enumerate(zip(names, shares.values(), strict=True)):
        y = _ROW * index + 6
        drawn.append(Bar(left, y, round(x.at(share) - left, 1), 14, "k0", f"{name}: {share:.0f} %"))
        labels.append(Label(left - 8, y + 11, name, "end"))
    return Chart(key, title, description, _ROW * len(names) + 44, x, None, drawn, (), (), labels)
