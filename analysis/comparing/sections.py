"""The parts of a comparison of studies."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.blocks import Block, Bullets, Figure, Paragraph, Section, Statement, Table, Tone
from analysis.comparing.differences import Difference, Weight, differences
from analysis.comparing.numbers import Change, Matched, Side, change, matched, overall, reach, replaced
from analysis.frames import trial_name
from analysis.markup import MISSING, Markdown, bold, count, heading, inline, number
from analysis.plots.chart import symbol
from analysis.plots.forest import Frame, Row, forest
from sweeper.metrics import METRICS
from sweeper.naming import without_common_words
from sweeper.records import TrialRecord
from sweeper.text import plain

MAX_MATCHED = 30


def outcome(sides: Sequence[Side]) -> Section:
    """The later studies' best against the first one's, and whether the numbers compare at all."""
    first, *later = sides
    same_work = all(each.weight is not Weight.WORK for each in differences(sides))
    blocks = _unlike(sides)
    for side in later:
        blocks.append(_headline(first, side, comparable=same_work))
        if words := _baselines(first, side):
            blocks.append(Paragraph(Markdown(words)))
    words = (
        "Intervals hold what starts of a server differ by, as each study has seen it; what else differs between "
        "two nights (heat, other users) they do not hold. The baselines show some of that."
    )
    alone = [Markdown(f"**{inline(side.label)}:** {inline(side.reading.verdict.text, 2000)}") for side in sides]
    blocks += [Paragraph(Markdown(words)), Paragraph(Markdown("What each study says by itself:")), Bullets(alone)]
    return Section("Verdict", blocks)


def _unlike(sides: Sequence[Side]) -> list[Block]:
    """What makes the numbers incomparable, and what is compared besides what was meant to be."""
    found = differences(sides)
    work, system = (
        ", ".join(inline(each.name) for each in found if each.weight is weight)
        for weight in (Weight.WORK, Weight.SYSTEM)
    )
    blocks: list[Block] = []
    if work:
        words = f"These studies did not do the same work ({work} differ): their numbers do not compare."
        blocks.append(Statement(Markdown(words), Tone.CAREFUL))
    if system:
        words = (
            f"Careful: the studies differ in {system}. A difference between them is that of all these together."
        )
        blocks.append(Statement(Markdown(words), Tone.CAREFUL))
    return blocks


def _headline(first: Side, later: Side, *, comparable: bool) -> Statement:
    ours, theirs = first.best, later.best
    ratio = change(first, later, (ours, theirs)) if ours and theirs else None
    if ratio is None or ours is None or theirs is None:
        return Statement(Markdown(f"{inline(later.label)}: nothing to compare has been measured."))
    words = f"The best of {inline(later.label)} is {_words(ratio)} the best of {inline(first.label)}"
    words += f": trial {theirs.number} against trial {ours.number}"
    if not comparable:
        return Statement(Markdown(f"{words}, which says nothing."))
    sure = "" if ratio.significant else "not significant, "
    tone = Tone.NEUTRAL if not ratio.significant else Tone.GOOD if ratio.ratio > 1 else Tone.CAREFUL
    return Statement(Markdown(f"{words} ({sure}90 % interval {_span(ratio)})."), tone)


def _words(ratio: Change) -> str:
    return f"{abs(100 * (ratio.ratio - 1)):.1f} % {'faster' if ratio.ratio >= 1 else 'slower'} than"


def _span(ratio: Change) -> str:
    return f"{100 * (ratio.low - 1):+.1f} to {100 * (ratio.high - 1):+.1f} %"


def _baselines(first: Side, later: Side) -> str:
    """How much faster the later study's baseline is; empty where one has none."""
    if first.baseline is None or later.baseline is None:
        return ""
    ratio = change(first, later, (first.baseline, later.baseline))
    if ratio is None:
        return ""
    sure = "" if ratio.significant else ", which is not significant"
    ours, theirs = inline(first.label), inline(later.label)
    return f"Without speculation {theirs} is {_words(ratio)} {ours} ({_span(ratio)}){sure}."


def what_differs(sides: Sequence[Side]) -> Section:
    """Every setting and fact that is not the same for all."""
    found = differences(sides)
    if not found:
        return Section("What differs", [Paragraph(Markdown("Nothing of what the studies have written down."))])
    titles = {
        Weight.WORK: "The work: with any of these the numbers do not compare",
        Weight.SYSTEM: "The system: what is being compared",
        Weight.SEARCH: "The search: where was looked, not what was found there",
    }
    blocks: list[Block] = []
    for weight, words in titles.items():
        if rows := [_difference_row(each) for each in found if each.weight is weight]:
            columns = {"setting": "l", **{str(inline(side.label)): "l" for side in sides}}
            blocks.append(Table(Markdown(words), columns, rows))
    return Section("What differs", blocks)


def _difference_row(each: Difference) -> list[Markdown]:
    return [inline(each.name), *(inline(value, 400) if value else MISSING for value in each.values)]


def side_by_side(sides: Sequence[Side]) -> Section | None:
    """Baseline and best of each study, against those of the first one."""
    first = sides[0]
    metric = first.reading.objective
    rows: list[list[Markdown]] = []
    drawn: list[Row] = []
    for what in ("baseline", "best"):
        reference = _of(first, what)
        for side in sides:
            trial = _of(side, what)
            if trial is None or not (values := side.values(trial)):
                continue
            value = sum(values) / len(values)
            ratio = change(first, side, (reference, trial)) if reference and side is not first else None
            rows.append(_side_row(side, trial, value, ratio))
            drawn.append(_side_mark(side, trial, value))
    if not rows:
        return None
    columns = {"study": "l", "trial": "r", "configuration": "l", heading(metric): "r", "accept_len (tok)": "r"}
    columns |= {f"against {inline(first.label)} (%)": "r", "90 % interval (%)": "l", "launches": "r"}
    title = "Baseline and best of each study"
    words = "Whiskers are 90 % intervals of the mean, as far as starts of a server differ."
    chart = forest(drawn, Frame("sides", title, words, heading(metric)))
    legend = [(symbol("base", "diamond"), "baseline"), (symbol("k0"), "best")]
    figure = Figure(Markdown(title), Markdown(words), chart.svg, legend)
    return Section("Side by side", [figure, Table(Markdown(title), columns, rows)])


def _of(side: Side, what: str) -> TrialRecord | None:
    return side.baseline if what == "baseline" else side.best


def _side_row(side: Side, trial: TrialRecord, value: float, ratio: Change | None) -> list[Markdown]:
    name = "baseline" if trial.is_baseline else trial_name(trial, side.reading.base) or ""
    cells = [
        inline(side.label),
        Markdown(str(trial.number)),
        inline(name),
        number(side.reading.objective, value),
        number("accept_length", trial.mean("accept_length")),
        MISSING if ratio is None else Markdown(f"{100 * (ratio.ratio - 1):+.1f}"),
        MISSING if ratio is None else Markdown(_span(ratio).removesuffix(" %")),
        Markdown(str(len(side.values(trial)))),
    ]
    return [bold(cell) for cell in cells] if trial.is_baseline else cells


def _side_mark(side: Side, trial: TrialRecord, value: float) -> Row:
    width = reach(side, trial)
    kind, shape = ("base", "diamond") if trial.is_baseline else ("k0", "circle")
    row = METRICS[side.reading.objective]
    name = f"{side.label}: {'baseline' if trial.is_baseline else f'trial {trial.number}'}"
    return Row(name, value, value / width, value * width, kind, shape, f"{name}, {row.format(value)} {row.unit}")


def same_configurations(first: Side, later: Side, key: str) -> Section | None:
    """What both have measured, one by one. `key` names the drawing."""
    pairs = matched(first, later)
    title = f"The same configurations in {plain(first.label)} and {plain(later.label)}"
    if not pairs:
        return None
    blocks: list[Block] = [Paragraph(_matched_words(first, later, pairs))]
    shown = pairs if len(pairs) <= MAX_MATCHED else [*pairs[: MAX_MATCHED // 2], *pairs[-MAX_MATCHED // 2 :]]
    blocks += [_matched_figure((first, later), shown, key), _matched_table(first, later, shown, len(pairs))]
    return Section(title, blocks)


def _matched_words(first: Side, later: Side, pairs: Sequence[Matched]) -> Markdown:
    faster = sum(pair.change.low > 1 for pair in pairs)
    slower = sum(pair.change.high < 1 for pair in pairs)
    words = (
        f"{count(len(pairs), 'configuration')} measured in both: {faster} significantly faster in "
        f"{inline(later.label)}, {slower} significantly slower, {len(pairs) - faster - slower} as fast. Of so "
        f"many, about {len(pairs) / 20:.1f} would seem faster by chance, and as many slower."
    )
    if mean := overall(pairs):
        words += f" On average {inline(later.label)} is {_words(mean)} {inline(first.label)} ({_span(mean)})."
    if apart := replaced(first, later):
        told = "; ".join(
            f"{inline(name)}: {_values(ours)} became {_values(theirs)}" for name, (ours, theirs) in apart.items()
        )
        words += f" Paired apart from what was replaced: {told}."
    return Markdown(words)


def _values(values: frozenset[object]) -> str:
    return ", ".join(sorted(str(inline(value)) for value in values))


def _matched_figure(sides: tuple[Side, Side], pairs: Sequence[Matched], key: str) -> Figure:
    first, later = sides
    names = without_common_words([trial_name(p.earlier, first.reading.base) or "" for p in pairs])
    rows = [
        Row(name, p.change.ratio, p.change.low, p.change.high, *_mark(p.change), f"{name}: {_span(p.change)}")
        for name, p in zip(names, pairs, strict=True)
    ]
    title = f"{plain(later.label, 60)} over {plain(first.label, 60)}"
    words = "The dashed line is equality; whiskers are 90 % intervals, each for itself."
    chart = forest(rows, Frame(key, title, words, "ratio"), 1.0)
    legend = [(symbol("k2", "triangle"), "faster"), (symbol("k1", "down"), "slower"), (symbol("muted"), "as fast")]
    return Figure(inline(title), Markdown(words), chart.svg, legend)


def _mark(ratio: Change) -> tuple[str, str]:
    if not ratio.significant:
        return "muted", "circle"
    return ("k2", "triangle") if ratio.ratio > 1 else ("k1", "down")


def _matched_table(first: Side, later: Side, pairs: Sequence[Matched], total: int) -> Table:
    metric = first.reading.objective
    columns = {"configuration": "l"}
    columns |= {f"{inline(side.label)} ({METRICS[metric].unit})": "r" for side in (first, later)}
    columns |= {"change (%)": "r", "90 % interval (%)": "l"}
    rows = [
        [
            inline(trial_name(pair.earlier, first.reading.base) or ""),
            number(metric, pair.earlier.mean(metric)),
            number(metric, pair.later.mean(metric)),
            Markdown(f"{100 * (pair.change.ratio - 1):+.1f}"),
            Markdown(_span(pair.change).removesuffix(" %")),
        ]
        for pair in pairs
    ]
    caption = Markdown("Configurations that both studies have measured")
    return Table(caption, columns, rows, total=total, noun="configuration in between", folded=True)
