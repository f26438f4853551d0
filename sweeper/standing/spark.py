"""A course of values as a line of text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.-=+*#@"


def sparkline(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """The values as bars of eight heights, from the smallest to the largest; at most `width` characters."""
    if not values or width < 1:
        return ""
    bars = _ASCII_BARS if ascii_only else _BARS
    count = min(width, len(values))
    shown = [values[round(i * (len(values) - 1) / max(1, count - 1))] for i in range(count)]
    low, high = min(values), max(values)
    if high <= low:
        return bars[3] * count
    return "".join(bars[round((value - low) / (high - low) * (len(bars) - 1))] for value in shown)
