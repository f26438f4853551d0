"""The part of the report on text: who writes what the baseline writes, and who may not."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.blocks import Block, Bullets, Paragraph, Section, Table
from analysis.frames import trial_name
from analysis.markup import ESTIMATES, MISSING, Markdown, count, inline, number, trials
from analysis.reading import Reading
from sweeper.outputs import BaselineOutputs, OutputComparison
from sweeper.records import TrialRecord

MAX_ROWS = 30


def lossless(reading: Reading) -> Section | None:
    """Greedy outputs against the baseline's, then the settings by which text may differ."""
    if not any(trial.is_baseline and trial.measured for trial in reading.trials):
        return None
    blocks = [*_compared(reading), *_lossy(reading), *_excluded(reading)]
    return Section("The same text?", blocks) if blocks else None


def _compared(reading: Reading) -> list[Block]:
    """Which configurations differ; in a sentence which do not, and what was not compared."""
    notes = [f"Not compared: {inline(path)} is {inline(value)}." for path, value in reading.drawn.items()]
    baseline = BaselineOutputs(reading.by_number[0])
    found = {
        trial.number: comparison
        for trial in reading.trials
        if not trial.is_baseline and (comparison := baseline.compare(trial)).num_compared
    }
    if not found:
        return [Paragraph(Markdown(" ".join([*notes, "Above 0 texts are drawn."])))] if notes else []
    differing = {n: comparison for n, comparison in found.items() if comparison.num_different}
    same = len(found) - len(differing)
    own = _own(baseline.compare(reading.by_number[0]))
    words = f"{same} of {count(len(found), 'configuration')} wrote exactly what the baseline wrote. {own}"
    told = Paragraph(Markdown(" ".join([words, *notes])))
    return [told, *_differing(reading, differing)] if differing else [told]


def _own(own: OutputComparison) -> str:
    if not own.own_compared:
        return "Whether the baseline repeats itself is not known: it was launched once."
    if not own.own_different:
        return f"The baseline repeated itself in all of {count(own.own_compared, 'output')}."
    return f"The baseline differs from itself in {own.own_different} of {count(own.own_compared, 'output')}."


def _differing(reading: Reading, found: Mapping[int, OutputComparison]) -> list[Block]:
    """A row per configuration whose text differs, the worst first."""
    order = sorted(found.items(), key=lambda item: (not item[1].corrupt, not item[1].beyond_own, item[0]))
    columns = {"trial": "r", "configuration": "l", "different": "r", "of": "r"}
    columns |= {"equal at least (characters)": "r", "what it means": "l"}
    rows = [_row(reading.by_number[n], reading, comparison) for n, comparison in order[:MAX_ROWS]]
    blocks: list[Block] = [Table(Markdown("Configurations whose text differs from the baseline's"), columns, rows)]
    if (left := len(order) - MAX_ROWS) > 0:
        blocks.append(Paragraph(Markdown(f"{count(left, 'more configuration')} left out.")))
    return blocks


def _row(trial: TrialRecord, reading: Reading, found: OutputComparison) -> list[Markdown]:
    first = MISSING if found.first_difference is None else Markdown(str(found.first_difference))
    return [
        Markdown(str(trial.number)),
        inline(trial_name(trial, reading.base) or ""),
        Markdown(str(found.num_different)),
        Markdown(str(found.num_compared)),
        first,
        Markdown(_meaning(found)),
    ]


def _meaning(found: OutputComparison) -> str:
    if found.corrupt:
        return "another text from the first words on: not the same model; no winner"
    if found.beyond_own:
        return "more than the baseline differs from itself: rounding at near-ties, or a fault"
    return "not significantly more than the baseline differs from itself"


def _lossy(reading: Reading) -> list[Block]:
    """The settings that may change the text, each with the trials that have it."""
    found: dict[str, list[int]] = {}
    for trial in reading.trials:
        for text in dict.fromkeys(text for launch in trial.launches for text in launch.lossy):
            found.setdefault(text, []).append(trial.number)
    if not found:
        return []
    lossy = sorted({n for numbers in found.values() for n in numbers})
    words = (
        f"May write other text than the baseline ({trials(lossy)}); no winner unless `verdict.allow_lossy=true`:"
    )
    lines = [Markdown(f"{inline(text, 600)} ({trials(numbers)})") for text, numbers in found.items()]
    return [Paragraph(Markdown(words)), Bullets(lines)]


def _excluded(reading: Reading) -> list[Block]:
    """What is faster than the advised configuration, or as fast, and may not win."""
    lines = [
        Markdown(
            f"trial {row.trial_number}, {inline(row.name)}, {'faster' if row.faster else 'as fast'}: "
            f"{number(reading.objective, row.value, unit=True, estimated=row.estimated)} "
            f"in {count(row.num_launches, 'launch')} ({inline('; '.join(row.reasons), 600)})"
        )
        for row in reading.verdict.excluded
    ]
    words = "At least as fast so far as what is advised, and left out of the verdict"
    if any(row.estimated for row in reading.verdict.excluded):
        words += f" ({ESTIMATES.rstrip('.')})"
    return [Paragraph(Markdown(f"{words}:")), Bullets(lines)] if lines else []
