"""Throughput against accept_length: what drafts bring, and what a step costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

from analysis.blocks import Figure
from analysis.frames import trial_name
from analysis.markup import Markdown, number
from analysis.plots.chart import MANY_DOTS, MAX_DOTS, SHAPES, WIDTH, Chart, Dot, Label, Line, symbol
from analysis.plots.scales import Axis, axis, thinned
from analysis.reading import Reading
from sweeper.engines.registry import roles_of
from sweeper.metrics import METRICS
from sweeper.records import TrialRecord, TrialState
from sweeper.text import plain

THROUGHPUT = "output_throughput"
_HEIGHT = 320.0
_MAX_COLOURS = 7
_STEP_TIMES_MS = (1, 2, 3, 5, 7, 10, 14, 20, 25, 30, 40, 50, 70, 100, 140, 200, 300, 500, 700, 1000)
_MAX_CONTOURS = 5


@dataclass(frozen=True)
class Point:
    """A trial that drafted. `drafter` and `steps`: what it is grouped by, in words."""

    trial: TrialRecord
    name: str
    accept_length: float
    throughput: float
    drafter: str
    steps: str

    @property
    def step_ms(self) -> float:
        """The time of a verify step, as if one request were answered at a time."""
        return 1000 * self.accept_length / self.throughput


@dataclass(frozen=True)
class _Groups:
    """Colours for drafters and symbols for steps; of one drafter alone, steps have the colours too."""

    points: Sequence[Point]

    @cached_property
    def drafters(self) -> Mapping[str, str]:
        """Name to class; the rarest share one."""
        names = [name for name, _ in Counter(point.drafter for point in self.points).most_common()]
        return {name: f"k{at}" if at < _MAX_COLOURS else "muted" for at, name in enumerate(names)}

    @cached_property
    def steps(self) -> Mapping[str, str]:
        """Steps to symbol; the longest share one."""
        names = sorted({point.steps for point in self.points}, key=lambda text: (len(text), text))
        return {name: SHAPES[min(at, len(SHAPES) - 1)] for at, name in enumerate(names)}

    def kind(self, point: Point) -> str:
        """The class of a point's colour."""
        if len(self.drafters) > 1:
            return self.drafters[point.drafter]
        return f"k{min(list(self.steps).index(point.steps), _MAX_COLOURS - 1)}"

    def legend(self) -> list[tuple[Markup, str]]:
        """What the symbols stand for."""
        if len(self.drafters) == 1:
            return [(symbol(self.kind(self._first(s)), shape), s) for s, shape in self.steps.items() if s]
        drafters = [(symbol(kind), name) for name, kind in self.drafters.items() if name]
        return [*drafters, *((symbol("plain", shape), name) for name, shape in self.steps.items() if name)]

    def _first(self, steps: str) -> Point:
        return next(point for point in self.points if point.steps == steps)


def acceptance(reading: Reading) -> list[Figure]:
    """The drawing, for a study that has measured accept_length under at least two configurations."""
    points = points_of(reading)
    if len(points) < 2:
        return []
    base = reading.by_number[0].mean(THROUGHPUT) if 0 in reading.by_number else None
    groups = _Groups(points)
    x = axis(_heading("accept_length"), [1.0, *(p.accept_length for p in points)], (52, WIDTH - 42))
    y = axis(
        _heading(THROUGHPUT), [*(p.throughput for p in points), *([base] if base else [])], (_HEIGHT - 40, 24)
    )
    best = max(points, key=lambda point: point.throughput)
    contours = _contours(points, x, y)
    lines = [line for line, _ in contours]
    size = 2.9 if len(points) > MANY_DOTS else 4.0
    dots = [
        Dot(x.at(p.accept_length), y.at(p.throughput), groups.kind(p), groups.steps[p.steps], _hint(p), size)
        for p in thinned(points, MAX_DOTS)
    ]
    legend = groups.legend()
    if base is not None:
        lines.append(Line([(x.start, y.at(base)), (x.end, y.at(base))], "base dashed"))
        dots.append(Dot(x.at(1.0), y.at(base), "base", "diamond", f"baseline: {base:.1f} tok/s", 5.5))
        legend.append((symbol("base", "diamond"), "baseline"))
    dots.append(Dot(x.at(best.accept_length), y.at(best.throughput), "ring", "circle", _hint(best), 8))
    legend.append((symbol("ring"), f"fastest: trial {best.trial.number}"))
    legend.append((symbol("contour", "line"), "equal time per step"))
    words = _words(best, base, max(points, key=lambda point: point.accept_length))
    title = "Throughput against accept_len"
    labels = [label for _, label in contours]
    chart = Chart("acceptance", title, words, _HEIGHT, x, y, (), lines, dots, labels)
    return [Figure(Markdown(title), Markdown(words), chart.svg, legend)]


def points_of(reading: Reading) -> list[Point]:
    """The measured trials that drafted."""
    named = _naming(reading)
    found = []
    for trial in reading.trials:
        accept, value = trial.mean("accept_length"), trial.mean(THROUGHPUT)
        if trial.is_baseline or trial.state is not TrialState.COMPLETE or accept is None or not value:
            continue
        drafter, steps = named(trial)
        found.append(Point(trial, trial_name(trial, reading.base) or "", accept, value, drafter, steps))
    return found


@dataclass(frozen=True)
class _Naming:
    """Which flags tell a drafter, and which its steps."""

    drafter: tuple[str, ...]
    steps: str

    def __call__(self, trial: TrialRecord) -> tuple[str, str]:
        flags = trial.canonical.flags
        named = [
            plain(str(flags[name]).rstrip("/").rpartition("/")[2], 40) for name in self.drafter if name in flags
        ]
        steps = flags.get(self.steps)
        return " ".join(named), "" if steps is None else f"{steps} step{'' if steps == 1 else 's'}"


def _naming(reading: Reading) -> _Naming:
    """By the engine's own roles; where it has none, drafters differ in their flags that are words."""
    roles = roles_of(reading.fingerprint.get("engine.name", ""))
    if roles is not None:
        return _Naming(roles.drafter, roles.num_steps)
    configs = [t.canonical.flags for t in reading.trials if not t.is_baseline and t.measured]
    words = dict.fromkeys(name for flags in configs for name, value in flags.items() if isinstance(value, str))
    shared = [name for name in words if all(name in flags for flags in configs)]
    return _Naming(tuple(name for name in shared if len({flags[name] for flags in configs}) > 1), "")


def _contours(points: Sequence[Point], x: Axis, y: Axis) -> list[tuple[Line, Label]]:
    """Lines on which a step takes equally long: throughput is accept_length over step time."""
    times = [point.step_ms for point in points]
    shown = [ms for ms in _STEP_TIMES_MS if 0.8 * min(times) <= ms <= 1.25 * max(times)]
    found: list[tuple[Line, Label]] = []
    for ms in thinned(shown, _MAX_CONTOURS):
        if _crosses(ms, x, y) and not any(_near(label, _contour(ms, x, y)[1]) for _, label in found):
            found.append(_contour(ms, x, y))
    return found


def _near(one: Label, other: Label) -> bool:
    """Whether two labels would touch."""
    return abs(one.x - other.x) < 42 and abs(one.y - other.y) < 14


def _crosses(ms: float, x: Axis, y: Axis) -> bool:
    """Whether enough of the line lies within the drawing to be told from the others."""
    first, last = max(x.low, y.low * ms / 1000), min(x.high, y.high * ms / 1000)
    return last - first > 0.1 * (x.high - x.low)


def _contour(ms: float, x: Axis, y: Axis) -> tuple[Line, Label]:
    first, last = max(x.low, y.low * ms / 1000), min(x.high, y.high * ms / 1000)
    ends = [(x.at(accept), y.at(1000 * accept / ms)) for accept in (first, last)]
    at_top = last < x.high
    place = (ends[1][0], ends[1][1] - 4) if at_top else (ends[1][0] + 3, ends[1][1] + 4)
    return Line(ends, "contour"), Label(*place, f"{ms:g} ms", "middle" if at_top else "start", "contour")


def _words(best: Point, base: float | None, longest: Point) -> str:
    words = (
        f"The fastest, trial {best.trial.number}, keeps {number('accept_length', best.accept_length)} tokens per "
        f"step; at one request at a time its step takes {best.step_ms:.1f} ms."
    )
    if base is not None:
        needed = base * best.step_ms / 1000
        words += f" At that time per step an accept_len of {number('accept_length', needed)} equals the baseline."
    if longest.trial.number != best.trial.number:
        words += (
            f" The longest accept_len, {number('accept_length', longest.accept_length)} in trial "
            f"{longest.trial.number}, is not the fastest: its step takes {longest.step_ms:.1f} ms."
        )
    return words


def _hint(point: Point) -> str:
    row = METRICS[THROUGHPUT]
    return plain(
        f"trial {point.trial.number}: {row.format(point.throughput)} {row.unit}, accept_len "
        f"{point.accept_length:.2f}, {point.step_ms:.1f} ms per step, {point.name}"
    )


def _heading(metric: str) -> str:
    row = METRICS[metric]
    return f"{row.label} ({row.unit})"
