"""The best so far, launch by launch and by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis.blocks import Figure
from analysis.markup import Markdown, duration, heading, number
from analysis.plots.chart import MANY_DOTS, MAX_DOTS, WIDTH, Chart, Dot, Line, symbol
from analysis.plots.scales import Axis, axis, thinned, time_unit
from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.records import LaunchRecord, duration_s
from sweeper.text import plain

_HEIGHT = 260.0


@dataclass(frozen=True)
class Event:
    """A launch of the night. `place`: its number, from 1; `ended_s`: seconds from the first start to its end."""

    place: int
    ended_s: float
    launch: LaunchRecord
    value: float | None
    best: float | None

    @property
    def kind(self) -> str:
        """The class of its colour."""
        if self.value is None:
            return "failed"
        return "base" if self.launch.trial_number == 0 else "muted" if self.launch.estimated else "k0"

    @property
    def shape(self) -> str:
        """Its symbol."""
        shapes = {"failed": "cross", "base": "diamond", "muted": "triangle"}
        return shapes.get(self.kind, "circle")


def progress(reading: Reading) -> list[Figure]:
    """Two drawings of the same: over the launches, which are what a night has few of, and over the time."""
    events = events_of(reading)
    if sum(event.value is not None for event in events) < 2:
        return []
    words = _words(reading, events)
    unit, length = time_unit(events[-1].ended_s)
    places = axis("launch", [1, len(events)], (52, WIDTH - 12), whole=True)
    times = axis(unit, [0.0, events[-1].ended_s / length], (52, WIDTH - 12))
    clock = f"The best of the night was reached after {_reached(events)}."
    return [
        _drawn(reading, events, _View("best-by-launch", "Best so far, launch by launch", words, places)),
        _drawn(reading, events, _View("best-by-time", "Best so far, by the clock", clock, times, length)),
    ]


def events_of(reading: Reading) -> list[Event]:
    """Every launch in the order of their start, with the best value known when it had ended."""
    start = reading.span[0] if reading.span else None
    best: float | None = None
    found = []
    allowed = {(n.trial_number, n.launch_number) for t in reading.trials for n in t.launches}
    for place, launch in enumerate(reading.launches, start=1):
        assert start is not None  # there are launches
        value = launch.metrics.get(reading.objective) if launch.ok else None
        counts = not launch.estimated and (launch.trial_number, launch.launch_number) in allowed
        if value is not None and counts:
            best = value if best is None else max(best, value)
        found.append(Event(place, duration_s(start, launch.ended_at), launch, value, best))
    return found


@dataclass(frozen=True)
class _View:
    """One way to look at the events. `unit_s`: seconds per unit of the clock on x; 0 where x counts launches."""

    key: str
    title: str
    words: str
    x: Axis
    unit_s: float = 0.0

    def across(self, event: Event) -> float:
        """Where an event lies."""
        return self.x.at(event.ended_s / self.unit_s if self.unit_s else event.place)


def _drawn(reading: Reading, events: Sequence[Event], view: _View) -> Figure:
    x, across = view.x, view.across
    up = axis(heading(reading.objective), [e.value for e in events if e.value is not None], (_HEIGHT - 40, 24))

    lines = []
    if (base := reading.by_number[0].mean(reading.objective) if 0 in reading.by_number else None) is not None:
        lines.append(Line([(x.start, up.at(base)), (x.end, up.at(base))], "base dashed"))
    if steps := _steps([(across(e), up.at(e.best)) for e in events if e.best is not None]):
        lines.append(Line([*steps, (across(events[-1]), steps[-1][1])], "best"))
    size = 2.2 if len(events) > MANY_DOTS else 3.2
    dots = [
        Dot(
            across(e),
            up.start - 4 if e.value is None else up.at(e.value),
            e.kind,
            e.shape,
            _hint(reading, e),
            size,
        )
        for e in thinned(events, MAX_DOTS)
    ]
    chart = Chart(view.key, view.title, view.words, _HEIGHT, x, up, (), lines, dots)
    return Figure(Markdown(view.title), Markdown(view.words), chart.svg, _legend(events))


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of a staircase; points that change nothing are left out."""
    corners: list[tuple[float, float]] = []
    for x, y in points:
        if not corners:
            corners.append((x, y))
        elif y != corners[-1][1]:
            corners += [(x, corners[-1][1]), (x, y)]
    return corners


def _legend(events: Sequence[Event]) -> list[tuple[Markup, str]]:
    kinds = {event.kind for event in events}
    entries = [
        ("k0", symbol("k0"), "a launch"),
        ("base", symbol("base", "diamond"), "of the baseline"),
        ("muted", symbol("muted", "triangle"), "ended early"),
        ("failed", symbol("failed", "cross"), "failed"),
    ]
    shown = [(drawn, words) for kind, drawn, words in entries if kind in kinds]
    return [
        *shown,
        (symbol("best", "line"), "best so far"),
        (symbol("base dashed", "line"), "the baseline's mean"),
    ]


def _words(reading: Reading, events: Sequence[Event]) -> str:
    last = events[-1].best
    within = next(
        (e.place for e in events if e.best is not None and last is not None and e.best >= 0.98 * last), None
    )
    failed = sum(event.value is None for event in events)
    words = f"{len(events)} launches, {failed or 'none'} of them failed."
    if last is None or within is None:
        return words
    value = number(reading.objective, last, unit=True)
    return f"{words} Within 2 % of the best single value, {value}, at launch {within}."


def _reached(events: Sequence[Event]) -> str:
    last = events[-1].best
    return str(duration(next(event.ended_s for event in events if event.best == last)))


def _hint(reading: Reading, event: Event) -> str:
    row, launch = METRICS[reading.objective], event.launch
    where = f"launch {event.place}: trial {launch.trial_number}, {launch.purpose.value}"
    if launch.failure is not None:
        return f"{where}, {launch.failure.kind.value}"
    return plain(where if event.value is None else f"{where}, {row.format(event.value)} {row.unit}")
