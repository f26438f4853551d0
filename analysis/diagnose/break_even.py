"""How good a drafter has to be: the accept_length at which it equals the baseline, its step time being as
measured. `specsweep predict` says the same of any configuration (sweeper/predicting/break_even.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.diagnose.context import Context, Point, Span, pct_text, percent
from analysis.diagnose.finding import Evidence, Finding, Severity
from sweeper.predicting.break_even import needed_accept_length
from sweeper.statistics.least_squares import Interval
from sweeper.statistics.stats import exp


@dataclass(frozen=True)
class BreakEven:
    """One drafter at its fastest configuration.

    `ratio`: baseline over throughput. `needed`: accept_length, tokens.
    """

    drafter: str
    point: Point
    has: Span
    ratio: Interval
    needed: Interval

    @property
    def falls_short(self) -> bool:
        """Whether it is certainly slower than the baseline."""
        return self.ratio.low > 1


def break_evens(context: Context) -> list[BreakEven]:
    """Every drafter's, the one nearest to its break-even first.

    A configuration is needed that told its accept_length.
    """
    baseline = context.baseline
    if baseline is None or not context.is_throughput:
        return []
    found: dict[str, BreakEven] = {}
    for point in context.drafting:  # fastest first
        has, drafter = point.accept_length, context.drafter(point)
        if has is None or drafter in found:
            continue
        log = context.log_ratio(baseline, point)
        ratio = Interval(exp(log.value), exp(log.low), exp(log.high))
        needed = needed_accept_length((has.low, has.high), log)
        found[drafter] = BreakEven(drafter, point, has, ratio, needed)
    return sorted(found.values(), key=lambda one: one.ratio.value)


def break_even(context: Context) -> Finding | None:
    """The break-even accept_length per drafter, and how far each is from it."""
    found = break_evens(context)
    if not found:
        return None
    best = found[0]
    gap = pct_text(percent(context.log_ratio(best.point, _base(context))))
    title = f"Break-even at accept_len {_needed(best)}: {_name(best)} has {best.has.text}"
    text = (
        f"At the step time of trial {best.point.number} ({context.name(best.point)}: "
        f"{context.shown(best.point)}, {gap} "
        f"against the baseline's {context.shown(_base(context))}) a drafter equals the baseline when so many "
        f"tokens are "
        f"kept per step, the step time being as it is. {_range_words(best)} {context.noise_words}."
    )
    return Finding(
        "break_even",
        Severity.LIMIT if best.falls_short else Severity.NOTE,
        title,
        text,
        tuple(_evidence(context, one) for one in found),
        _next_step(context, best),
    )


def draft_limit(context: Context) -> Finding | None:
    """Whether the draft model keeps speculation below the baseline, or a step that is too dear for any."""
    found = break_evens(context)
    if not found or not all(one.falls_short for one in found):
        return None
    best = found[0]
    most = _most_kept(context, best.point)
    if most is not None and best.needed.low > most:
        return Finding(
            "step_limit",
            Severity.LIMIT,
            "The step is too dear: no drafter would reach the baseline at this step time",
            f"Even drafts that were always right would keep {most} tokens per step in trial {best.point.number}; "
            f"{_needed(best)} are needed. What verifying and drafting cost is the limit, not the draft model.",
            tuple(_evidence(context, one) for one in found),
            "Look at CUDA graphs, the attention backend of the drafts and communication first; a better drafter "
            "does not "
            "help.",
        )
    return Finding(
        "draft_limit",
        Severity.LIMIT,
        "The draft model is the limit: no setting that was tried makes up for how little of its drafts is kept",
        f"The best configuration keeps {best.has.text} tokens per step and needs {_needed(best)} to equal the "
        f"baseline: "
        f"{pct_text(_short_pct(best))} more. {_per_drafter(context, found)} {context.noise_words}.",
        tuple(_evidence(context, one) for one in found),
        "Another draft model, one trained on texts like yours, or none. Ask specsweep predict what a "
        "configuration "
        "would need.",
    )


def _base(context: Context) -> Point:
    return next(point for point in context.points if point.number == 0)


def _short_pct(one: BreakEven) -> Interval:
    return Interval(*(100 * (each - 1) for each in (one.ratio.value, one.ratio.low, one.ratio.high)))


def _needed(one: BreakEven) -> str:
    return f"{one.needed.value:.2f} ({one.needed.low:.2f} to {one.needed.high:.2f})"


def _name(one: BreakEven) -> str:
    return one.drafter or "this drafter"


def _range_words(one: BreakEven) -> str:
    if one.has.low == one.has.high:
        return f"It takes {one.ratio.value:.3f} times what is kept ({one.ratio.low:.3f} to {one.ratio.high:.3f})."
    return (
        f"Of accept_len only a range was told, {one.has.text}; whatever it is, it takes {one.ratio.value:.3f} "
        f"times that "
        f"({one.ratio.low:.3f} to {one.ratio.high:.3f})."
    )


def _per_drafter(context: Context, found: Sequence[BreakEven]) -> str:
    if len(found) == 1:
        return "One drafter was tried."
    listed = "; ".join(
        f"{_name(one)} has {one.has.text} and needs {_needed(one)} with the settings of trial {one.point.number} "
        f"({context.name(one.point)})"
        for one in found
    )
    return f"{len(found)} drafters were tried, each at its fastest: {listed}."


def _most_kept(context: Context, point: Point) -> int | None:
    """Tokens that a step keeps when every draft is right: its steps and the bonus."""
    steps = point.whole(context.roles.num_steps) if context.roles else None
    return None if steps is None else steps + 1


def _next_step(context: Context, best: BreakEven) -> str:
    if best.falls_short:
        return f"Serve without speculation, or try a drafter that keeps {best.needed.value:.2f} tokens and more."
    if best.ratio.high < 1:
        spare = 100 * (1 - best.ratio.value)
        return (
            f"By all its launches, those it was chosen by among them, acceptance could fall by {spare:.0f} % "
            "before speculation no longer pays. Whether it does pay is for the verdict to say, from fresh "
            "launches."
        )
    return "Confirm with further launches of both: the difference is within the noise."


def _evidence(context: Context, one: BreakEven) -> Evidence:
    return Evidence(
        f"{_name(one)}, trial {one.point.number}",
        f"has {one.has.text} tok, needs {_needed(one)} tok, does {context.shown(one.point)}",
        (one.point.number, 0),
    )
