"""What to do next, drawn from the verdict: the first thing that a reader wants to know after it."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.markup import Markdown, inline, link, number
from analysis.reading import Reading
from sweeper.deciding.verdict import Comparison, VerdictKind


def next_steps(reading: Reading) -> list[Markdown]:
    """Sentences in the order of their weight; none for a study that has measured nothing."""
    return [Markdown(step) for step in _steps(reading)]


def _steps(reading: Reading) -> Iterator[str]:
    verdict = reading.verdict
    if verdict.baseline_value is None:
        if reading.launches:
            yield f"The baseline could not be measured: mend what {link('Failures', 'failures')} names first."
        return
    if not verdict.confirmed and reading.imported:
        yield "Import repeats of every configuration, or sweep them yourself, with `study.warm_start`."
    elif not verdict.confirmed:
        yield "Let it go on with the same command: only fresh launches of the finalists show what is real."
    elif verdict.kind is not VerdictKind.NO_GAIN:
        yield (
            f"Put it into production: `specsweep export` writes a launch script, a unit and more; "
            f"the bare command is under {link('How to run it', 'how-to-run-it')}."
        )
    else:
        yield from _without_gain(reading)
    if reading.aside:
        yield "Part of the night has another provenance: measure it again, or start another `study.name`."
    if verdict.drift.significant:
        yield "The host drifted: look at cooling, clocks and other users before the next night."
    if verdict.excluded and not verdict.excluded[0].estimated and verdict.excluded[0].faster:
        yield (
            f"Trial {verdict.excluded[0].trial_number} ({inline(verdict.excluded[0].name)}) is faster, but may "
            "write other text: decide whether that is acceptable to you (`verdict.allow_lossy=true`)."
        )


def _without_gain(reading: Reading) -> Iterator[str]:
    """What remains when the finalists did not beat the baseline."""
    best = next(iter(reading.verdict.comparisons), None)
    yield "Serve without speculation for now."
    if best is None:
        return
    if best.high is not None and best.high > 1:
        more = "importing more repeats" if reading.imported else "a larger `budget.confirm_launches`"
        most = f"{100 * (best.high - 1):.1f} %"
        yield f"Trial {best.trial_number} may still be up to {most} faster: {more} narrows that down."
    elif needed := _needed(reading, best):
        yield needed


def _needed(reading: Reading, best: Comparison) -> str:
    """How good the best configuration's drafts would have to be; empty when its accept_length is not known."""
    accept = reading.by_number[best.trial_number].mean("accept_length")
    if accept is None or best.speedup <= 0:
        return ""
    return (
        f"A better drafter is needed: trial {best.trial_number} keeps {number('accept_length', accept)} tokens "
        "per step, and at its time per step would equal the baseline with "
        f"{number('accept_length', accept / best.speedup)}."
    )
