"""Configurations that cannot be told apart, and noise that nobody measured."""

from __future__ import annotations

from analysis.diagnose.context import Context, numbers, pct_text, percent
from analysis.diagnose.finding import Evidence, Finding, Severity
from sweeper.statistics.least_squares import around

MAX_SHOWN = 8


def equals(context: Context) -> Finding | None:
    """The drafting configurations not surely slower than the fastest one: the simplest is as good as any."""
    if len(context.drafting) < 2:
        return None
    best = context.drafting[0]
    near = [best, *(p for p in context.drafting[1:] if context.log_ratio(p, best).high >= 0)]
    if len(near) < 2:
        return None
    simplest = min(near, key=lambda point: context.simplicity(point.trial.canonical))
    names = ", ".join(str(number) for number in numbers(near))
    return Finding(
        "equals",
        Severity.NOTE,
        f"No difference is shown between these {len(near)}: choose the simplest, trial {simplest.number}",
        f"Trials {names} cannot be told from the fastest drafting one, trial {best.number} "
        f"({context.shown(best)}). "
        f"{context.noise_words}.",
        tuple(
            Evidence(
                context.name(point),
                f"{context.shown(point)}, {pct_text(context.ratio_pct(point, best))} against trial {best.number}",
                (point.number,),
            )
            for point in near[:MAX_SHOWN]
            if point is not best
        ),
        f"If you take one of these, take trial {simplest.number} ({context.name(simplest)}); whether it beats the "
        "baseline is for the verdict to say. More launches of them would tell them apart.",
    )


def unknown_noise(context: Context) -> Finding | None:
    """Whether intervals rest on an assumption, because nothing was launched twice."""
    if len(context.points) < 2 or context.seen_noise.launches is not None:
        return None
    least = percent(around(0.0, 2 * context.noise.variance, context.noise.degrees)).high
    prompts = context.seen_noise.prompts
    within = f" ({prompts.pct:.0f} % here)" if prompts else ""
    return Finding(
        "unknown_noise",
        Severity.WARNING,
        f"Nothing was launched twice: differences below about {least:.0f} % cannot be believed",
        f"{context.noise_words}, as servers with a GPU to themselves do when they are warm. What prompts "
        f"differ by within one launch{within} says nothing of the next start.",
        (Evidence("single launches", f"{len(context.points)} configurations", numbers(context.points)),),
        "Launch the baseline and the best one three times each; then the intervals are your own host's.",
    )
