"""Every configuration with the interval that its value has, as far as starts of a server differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis.blocks import Figure
from analysis.frames import is_estimated, trial_name
from analysis.markup import Markdown, heading
from analysis.plots.chart import MAX_DOTS, WIDTH, Chart, Dot, Line, symbol
from analysis.plots.forest import Frame, Row, forest
from analysis.plots.scales import axis, thinned
from analysis.reading import Reading
from sweeper.metrics import METRICS
from sweeper.naming import without_common_words
from sweeper.records import TrialRecord, TrialState
from sweeper.statistics.stats import CONFIDENCE, exp, t_quantile
from sweeper.text import plain

MAX_ROWS = 30
"""So many configurations have a row of their own."""

_HEIGHT = 240.0


@dataclass(frozen=True)
class Interval:
    """A trial's value, and between what it lies."""

    trial: TrialRecord
    name: str
    value: float
    low: float
    high: float
    estimated: bool

    @property
    def kind(self) -> str:
        """The class of its colour."""
        return "base" if self.trial.is_baseline else "muted" if self.estimated else "k0"

    @property
    def shape(self) -> str:
        """Its symbol."""
        return "diamond" if self.trial.is_baseline else "triangle" if self.estimated else "circle"


def intervals(reading: Reading) -> list[Figure]:
    """The best ones by name; of more than those, all of them in order as well."""
    found = measured_intervals(reading)
    if len(found) < 2:
        return []
    base = next((each.value for each in found if each.trial.is_baseline), None)
    shown = [each for rank, each in enumerate(found) if rank < MAX_ROWS or each.trial.is_baseline]
    figures = [_by_name(reading, shown, base, len(found))]
    return [*figures, _in_order(reading, found, base)] if len(found) > len(shown) else figures


def measured_intervals(reading: Reading) -> list[Interval]:
    """The measured trials, best first."""
    spread = reading.verdict.noise.expected_launch
    reach = t_quantile(CONFIDENCE, spread.degrees) * spread.pct / 100
    found = []
    for trial in reading.trials:
        value = trial.mean(reading.objective)
        if trial.state is not TrialState.COMPLETE or value is None:
            continue
        width = exp(reach / math.sqrt(len(trial.measured)))
        name = "baseline" if trial.is_baseline else trial_name(trial, reading.base) or ""
        found.append(Interval(trial, name, value, value / width, value * width, is_estimated(trial)))
    return sorted(found, key=lambda each: -each.value)


def _by_name(reading: Reading, shown: Sequence[Interval], base: float | None, num_all: int) -> Figure:
    rivals = [each for each in shown if not each.trial.is_baseline]
    short = dict(
        zip((r.trial.number for r in rivals), without_common_words([r.name for r in rivals]), strict=True)
    )
    rows = [
        Row(
            f"{each.trial.number} {short.get(each.trial.number, each.name)}",
            each.value,
            each.low,
            each.high,
            each.kind,
            each.shape,
            _hint(reading, each),
        )
        for each in shown
    ]
    title = (
        "Configurations, best first"
        if num_all == len(shown)
        else f"The best {MAX_ROWS} of {num_all} configurations"
    )
    words = _words(reading, shown)
    frame = Frame("intervals", title, words, heading(reading.objective))
    chart = forest(rows, frame, base)
    return Figure(Markdown(title), Markdown(words), chart.svg, _legend(shown))


def _legend(shown: Sequence[Interval]) -> list[tuple[Markup, str]]:
    """The symbols that occur."""
    kinds = {each.kind for each in shown}
    entries = [
        ("base", symbol("base", "diamond"), "baseline"),
        ("k0", symbol("k0"), "measured"),
        ("muted", symbol("muted", "triangle"), "estimate: measuring ended early"),
        ("base", symbol("base dashed", "line"), "the baseline's value"),
    ]
    return [(drawn, words) for kind, drawn, words in entries if kind in kinds]


def _words(reading: Reading, shown: Sequence[Interval]) -> str:
    """What the whiskers are, and how many of the configurations they leave on one side of the baseline."""
    base = next((each for each in shown if each.trial.is_baseline), None)
    words = (
        f"Whiskers hold a configuration's true mean with {100 * (2 * CONFIDENCE - 1):.0f} % confidence, as far as "
        f"starts differ by {reading.verdict.noise.expected_launch.pct:.1f} %; they do not allow for the number of "
        "configurations."
    )
    if base is None:
        return words
    above = sum(each.low > base.high for each in shown if each is not base)
    below = sum(each.high < base.low for each in shown if each is not base)
    unclear = len(shown) - 1 - above - below
    return f"{words} Of those shown, {above} lie above the baseline's, {below} below, {unclear} overlap with it."


def _in_order(reading: Reading, found: Sequence[Interval], base: float | None) -> Figure:
    """All of them from the best to the worst, without names."""
    across = axis("rank", [1, len(found)], (52, WIDTH - 10), whole=True)
    up = axis(heading(reading.objective), [v for each in found for v in (each.low, each.high)], (_HEIGHT - 40, 22))
    ranked = thinned(list(enumerate(found, start=1)), MAX_DOTS)
    lines = [
        Line([(across.at(rank), up.at(each.low)), (across.at(rank), up.at(each.high))], f"{each.kind} whisker")
        for rank, each in ranked
    ]
    if base is not None:
        lines.append(Line([(across.start, up.at(base)), (across.end, up.at(base))], "base dashed"))
    dots = [
        Dot(across.at(rank), up.at(each.value), each.kind, each.shape, _hint(reading, each), 2.2)
        for rank, each in ranked
    ]
    faster = sum(1 for each in found if base is not None and each.value > base)
    words = f"{len(found)} configurations were measured; {faster} of them did more than the baseline."
    title = "All configurations in order"
    chart = Chart("in-order", title, words, _HEIGHT, across, up, (), lines, dots)
    return Figure(Markdown(title), Markdown(words), chart.svg, _legend(found))


def _hint(reading: Reading, each: Interval) -> str:
    row = METRICS[reading.objective]
    about = "≈ " if each.estimated else ""
    span = f"{row.format(each.low)} to {row.format(each.high)}"
    return plain(f"trial {each.trial.number}: {about}{row.format(each.value)} {row.unit} ({span}), {each.name}")
