"""A step divided into draft, verify and overhead; where the trials do not tell, that is said."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.diagnose.context import Context, Point, numbers
from analysis.diagnose.finding import Evidence, Finding, Severity
from analysis.diagnose.step_time import Model, Step, baseline_ms, ms_text, same_baseline, step_model, steps_of
from sweeper.statistics.least_squares import Interval, around


def step_split(context: Context) -> Finding | None:
    """A step divided into draft, verify and overhead."""
    steps = steps_of(context)
    if len(steps) < 2:
        return None
    model = step_model(context)
    baseline = same_baseline(context, steps[0].point)
    if model is None or not model.has_tokens or baseline is None:
        return _untold(context, steps, model, has_baseline=baseline is not None)
    at = model.fastest
    parts = _parts(context, model, at, baseline)
    title = ", ".join(f"{name} {part.value:.1f}" for name, part in parts.items())
    largest = max(parts, key=lambda name: parts[name].value)
    return Finding(
        "step_split",
        Severity.NOTE,
        f"A step of {at.ms:.1f} ms in trial {at.point.number}: {title} ms",
        f"From {len(steps)} trials that differ only in steps, branches and draft tokens, by least squares: each "
        f"draft "
        f"forward costs {ms_text(model.found.of((0.0, 1.0, 0.0)))}, each further token to verify "
        f"{ms_text(model.per_token)}. "
        f"The baseline's step, {baseline_ms(context, baseline):.1f} ms, is what verifying one token takes. "
        f"Overhead is what is left. {context.noise_words}.",
        tuple(
            Evidence(name, ms_text(part), numbers([step.point for step in steps])) for name, part in parts.items()
        ),
        _ADVICE[largest],
    )


_ADVICE = {
    "draft": "Fewer steps, or a smaller draft model; see that its backend runs inside CUDA graphs.",
    "verify": "Verifying is most of it, as it should be: gains come from acceptance, not from cheaper drafts.",
    "overhead": "Look at CUDA graphs, the overlapping schedule and the CPU: that time is neither drafting nor "
    "verifying.",
}


def _untold(context: Context, steps: Sequence[Step], model: Model | None, *, has_baseline: bool) -> Finding | None:
    """What can be said instead, and what would have to be measured."""
    if model is None:
        why = "the numbers of steps and draft tokens do not vary enough, or go up and down together"
        said, next_step = (
            "Nothing can be said of its parts.",
            "Measure one more number of steps and of draft tokens.",
        )
    elif not model.has_tokens:
        why = "all of them are chains, where each step adds exactly one token"
        said = f"One more step, a draft forward and the token verified for it, costs {ms_text(model.per_step)}."
        next_step = "One tree (topk 2 and more draft tokens than steps + 1) would tell the two apart."
    else:
        why = "the baseline was not measured under the same settings" if not has_baseline else ""
        said = (
            f"A draft forward costs {ms_text(model.found.of((0.0, 1.0, 0.0)))}, a further token to verify "
            f"{ms_text(model.per_token)}; how much of the rest is the target model's own step is open."
        )
        next_step = "Measure the baseline under the settings of these trials."
    return Finding(
        "step_split",
        Severity.NOTE,
        "How a step divides into draft, verify and overhead cannot be told from what was measured",
        f"{len(steps)} trials differ only in the numbers of the draft, but {why}. {said}",
        tuple(
            Evidence(f"{s.num_steps} steps, {s.tokens} draft tokens", f"{s.ms:.2f} ms a step", (s.point.number,))
            for s in steps[:8]
        ),
        next_step,
    )


def _parts(context: Context, model: Model, at: Step, baseline: Point) -> dict[str, Interval]:
    """Milliseconds of the step `at`. The baseline's own noise is in what verifying takes and in what is left."""
    base_ms = baseline_ms(context, baseline)
    own = around(base_ms, base_ms**2 * context.noise.variance / baseline.num_launches, context.noise.degrees)
    return {
        "draft": model.found.of((0.0, float(at.num_steps), 0.0)),
        "verify": _combined(own, model.found.of((0.0, 0.0, at.tokens - 1.0)), 1),
        "overhead": _combined(model.found.of((1.0, -1.0, 0.0)), own, -1),
    }


def _combined(one: Interval, other: Interval, sign: int) -> Interval:
    """The sum, or the difference, of two that do not depend on each other."""
    value = one.value + sign * other.value
    reach = math.hypot(one.high - one.value, other.high - other.value)
    return Interval(value, value - reach, value + reach)
