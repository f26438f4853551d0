"""The part of the report on provenance: what every number depends on, and which launches were put aside."""

from __future__ import annotations

from analysis.blocks import Block, Bullets, Code, Paragraph, Section, Table
from analysis.markup import Markdown, count, inline, shell_words
from analysis.reading import Reading
from sweeper.deciding.comparable import Aside
from sweeper.fingerprint import IMPORTED
from sweeper.storing.damage import told

MAX_ASIDE = 40


def provenance(reading: Reading) -> Section:
    """What every number depends on, what is not compared for its sake, and how to go on from here."""
    facts = [[inline(path), inline(value, 600)] for path, value in reading.fingerprint.items()]
    kept: Block = Paragraph(Markdown("Nothing has been written down yet."))
    if facts:
        kept = Table(Markdown("What the study depends on"), {"setting": "l", "value": "l"}, facts)
    known = [*_left_out(reading), *_put_aside(reading), kept, *_recorded(reading)]
    is_clean = not (reading.aside or reading.damages)
    if IMPORTED in reading.fingerprint:
        return Section("What the numbers depend on", [*known, *_learning(reading)], folded=is_clean)
    name = shell_words([f"study.name={reading.name}"], {})[0]
    again = [f"specsweep run {name}", f"specsweep run {name} budget.trials={2 * max(len(reading.recorded), 10)}"]
    words = (
        "Add the settings of the first run (`preset=`, `study.dir=`, ...) to these. The first goes on where the "
        "sweep stopped; the second measures more configurations. Under another `study.name` all is measured anew. "
        "A run with other settings than the ones above is refused."
    )
    blocks = [*known, Paragraph(Markdown(words)), Code(again, "bash")]
    return Section("What the numbers depend on", blocks, folded=is_clean)


def _learning(reading: Reading) -> list[Block]:
    """How a search learns from results that others measured."""
    words = "These results were imported: no sweep goes on with them, but one can learn from them (on their host):"
    start = shell_words([f"study.warm_start=[{reading.name}]"], {})[0]
    return [Paragraph(Markdown(words)), Code([f"specsweep run study.name=next {start}"], "bash")]


def _recorded(reading: Reading) -> list[Block]:
    """What each launch wrote down of its own provenance; all values of a fact that is not the same for all."""
    found: dict[str, list[str]] = {}
    for launch in reading.measured:
        for name, value in launch.provenance.items():
            found.setdefault(name, []).append(value)
    rows = [
        [inline(name), Markdown("; ".join(inline(value, 600) for value in dict.fromkeys(values)))]
        for name, values in sorted(found.items())
    ]
    if not rows:
        return []
    caption = Markdown("Provenance of the measured launches")
    words = Paragraph(Markdown("Written down with every measured launch:"))
    return [words, Table(caption, {"fact": "l", "value": "l"}, rows)]


def _left_out(reading: Reading) -> list[Block]:
    """What of the study could not be read."""
    if not reading.damages:
        return []
    words = "Left out, because it cannot be read. Another version of specsweep wrote it, or it is damaged:"
    return [Paragraph(Markdown(words)), Bullets([inline(line, 600) for line in told(reading.damages)])]


def _put_aside(reading: Reading) -> list[Block]:
    """The launches that are not compared, each with the facts in which it differs."""
    if not reading.aside:
        return []
    words = "Not compared, because what they were measured with is not what the newest baseline was measured with:"
    items = [_aside_line(found) for found in reading.aside[:MAX_ASIDE]]
    if (left := len(reading.aside) - MAX_ASIDE) > 0:
        items.append(Markdown(f"{count(left, 'other launch')} left out"))
    return [Paragraph(Markdown(words)), Bullets(items)]


def _aside_line(found: Aside) -> Markdown:
    differing = "; ".join(
        f"{inline(name)} {inline(theirs)} instead of {inline(ours)}"
        for name, (ours, theirs) in found.differing.items()
    )
    return Markdown(f"trial {found.launch.trial_number}, launch {found.launch.launch_number}: {differing}")
