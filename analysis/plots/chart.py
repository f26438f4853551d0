"""A drawing as plain data, and its SVG. The page's style sheet has the colours of its classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from analysis.plots.scales import Axis
from analysis.templating import rendered
from sweeper.text import plain

WIDTH = 460.0
"""Pixels. Drawings are made for a phone or half a page; the page scales them."""

SHAPES = ("circle", "square", "triangle", "diamond", "down", "plus")
"""Symbols that can be told apart without colours."""

MAX_DOTS = 2000
"""So many dots are drawn at most; more can neither be told apart nor mailed."""

MANY_DOTS = 200
"""Above this they are drawn smaller."""


@dataclass(frozen=True)
class Dot:
    """A symbol. `kind` is the class of its colour, `hint` what a pointer over it shows."""

    x: float
    y: float
    kind: str = "plain"
    shape: str = "circle"
    hint: str = ""
    size: float = 4.0

    @property
    def path(self) -> str:
        """Its outline."""
        return _OUTLINES[self.shape](self.x, self.y, self.size)


@dataclass(frozen=True)
class Line:
    """A line through points. `dash`: what the style sheet knows as `dashed`."""

    points: Sequence[tuple[float, float]]
    kind: str = "plain"

    @property
    def path(self) -> str:
        """The line's points as SVG writes them."""
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in self.points)


@dataclass(frozen=True)
class Bar:
    """A rectangle with its upper left corner at x, y."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    hint: str = ""


@dataclass(frozen=True)
class Label:
    """A text. `anchor`: start, middle or end of it stands at x."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    kind: str = ""


@dataclass(frozen=True)
class Chart:
    """`key` names it within a page. `title` and `description` are read out instead of it; plain text."""

    key: str
    title: str
    description: str
    height: float
    x: Axis | None = None
    y: Axis | None = None
    bars: Sequence[Bar] = ()
    lines: Sequence[Line] = ()
    dots: Sequence[Dot] = ()
    labels: Sequence[Label] = ()
    width: float = field(default=WIDTH)

    @property
    def svg(self) -> Markup:
        """The drawing."""
        return rendered("chart.svg.j2", chart=self)


def text_width(text: str, *, bold: bool = False) -> float:
    """Pixels that a label takes at most, in any common sans-serif font."""
    width = sum(_WIDTHS.get(character, 11.0 if character.isupper() else 7.5) for character in text)
    return width * (1.12 if bold else 1.0)


def fitted(text: str, pixels: float, *, bold: bool = False) -> str:
    """`text` on one line, cut where it would be wider than `pixels`; an ellipsis shows that."""
    shown = plain(text)
    if text_width(shown, bold=bold) <= pixels:
        return shown
    while shown and text_width(shown + "…", bold=bold) > pixels:
        shown = shown[:-1]
    return shown.rstrip() + "…"


def symbol(kind: str, shape: str = "circle") -> Markup:
    """A symbol by itself, for a legend. Shapes beside SHAPES: `line`, `dashed`, `bar`."""
    outline = Dot(8, 6, kind, shape, size=4.5).path if shape in _OUTLINES else ""
    return rendered("symbol.svg.j2", kind=kind, shape=shape, outline=outline)


_WIDTHS = {
    **dict.fromkeys("ijl.,:;|!'I()[] ", 4.6),
    **dict.fromkeys('frt-/\\"1', 5.6),
    **dict.fromkeys("ABEFJKLPRSTVXYZ_=", 8.4),
    **dict.fromkeys("CDGHNOQU", 9.6),
    **dict.fromkeys("mwMW%@…", 12.2),
}
"""Pixels at 12 px; DejaVu Sans, the widest of the fonts that the style sheet names, decides."""


def _circle(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y:.1f}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0z"


def _square(x: float, y: float, r: float) -> str:
    s = 0.9 * r
    return f"M{x - s:.1f} {y - s:.1f}h{2 * s:.1f}v{2 * s:.1f}h{-2 * s:.1f}z"


def _triangle(x: float, y: float, r: float) -> str:
    return f"M{x:.1f} {y - 1.15 * r:.1f}l{1.15 * r:.1f} {2 * r:.1f}h{-2.3 * r:.1f}z"


def _down(x: float, y: float, r: float) -> str:
    return f"M{x:.1f} {y + 1.15 * r:.1f}l{1.15 * r:.1f} {-2 * r:.1f}h{-2.3 * r:.1f}z"


def _diamond(x: float, y: float, r: float) -> str:
    s = 1.25 * r
    return f"M{x:.1f} {y - s:.1f}l{s:.1f} {s:.1f}l{-s:.1f} {s:.1f}l{-s:.1f} {-s:.1f}z"


def _plus(x: float, y: float, r: float) -> str:
    a, b = 0.4 * r, 1.2 * r
    c = b - a
    return (
        f"M{x - a:.1f} {y - b:.1f}h{2 * a:.1f}v{c:.1f}h{c:.1f}v{2 * a:.1f}h{-c:.1f}v{c:.1f}h{-2 * a:.1f}"
        f"v{-c:.1f}h{-c:.1f}v{-2 * a:.1f}h{c:.1f}z"
    )


def _cross(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}"


_OUTLINES = {
    "circle": _circle,
    "square": _square,
    "triangle": _triangle,
    "down": _down,
    "diamond": _diamond,
    "plus": _plus,
    "cross": _cross,
}
