"""Where the time of a step goes: drafting, verifying, and what is left, told by the trials themselves.

    step time = base + forward x (steps - 1) + token x (draft tokens - 1)

over trials that differ in nothing but the numbers of the draft. A step time is accept_length over throughput, so
prefill and the client's share are in it. The baseline's step is what verifying a single token takes; what neither
drafting nor verifying explains is overhead: launching, sampling, the schedule.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from analysis.diagnose.context import Context, Point, numbers
from analysis.diagnose.finding import Evidence, Finding, Severity
from sweeper.least_squares import Fit, Interval, around, fit

CHEAP_TOKEN = 0.02
"""Of a step without drafts. When a further verified token costs surely less, reading the weights decides, not
computing: one pass over them serves all tokens."""

DEAR_TOKEN = 0.05
"""Above it, computing (or experts woken up by other tokens) decides."""


@dataclass(frozen=True)
class Step:
    """A drafting point whose step time is known: milliseconds per step of one stream."""

    point: Point
    ms: float
    num_steps: int
    tokens: int


@dataclass(frozen=True)
class Model:
    """A fit.

    `has_tokens`: whether verifying is told apart from drafting; else a step means both, one token each.
    """

    steps: tuple[Step, ...]
    found: Fit
    has_tokens: bool

    @property
    def fastest(self) -> Step:
        """The point with the highest value."""
        return max(self.steps, key=lambda step: step.point.log_value)

    @property
    def per_step(self) -> Interval:
        """What one more step of a chain costs, in ms: a draft forward and one more token to verify."""
        return self.found.of((0.0, 1.0, 1.0) if self.has_tokens else (0.0, 1.0))

    @property
    def per_token(self) -> Interval:
        """What one more verified token costs, in ms. Only with `has_tokens`."""
        return self.found.of((0.0, 0.0, 1.0))


def steps_of(context: Context) -> tuple[Step, ...]:
    """The largest group of drafting points that differ only in the numbers of the draft; of equals the fastest."""
    groups: dict[Hashable, list[Step]] = {}
    for point in context.drafting:
        step = _step(context, point)
        if step is not None:
            groups.setdefault(_rest(context, point), []).append(step)
    empty: list[Step] = []
    return tuple(max(groups.values(), key=len, default=empty))


def step_model(context: Context) -> Model | None:
    """The step time as far as the trials tell it; None where they do not."""
    steps = steps_of(context)
    weights = [step.point.num_launches / step.ms**2 for step in steps]
    times = [step.ms for step in steps]
    full = [(1.0, step.num_steps - 1.0, step.tokens - 1.0) for step in steps]
    found = fit(full, times, weights, context.noise)
    if found is not None:
        return Model(steps, found, has_tokens=True)
    if not all(step.tokens == step.num_steps + 1 for step in steps):
        return None
    found = fit([row[:2] for row in full], times, weights, context.noise)
    return Model(steps, found, has_tokens=False) if found is not None else None


def step_split(context: Context) -> Finding | None:
    """A step divided into draft, verify and overhead."""
    steps = steps_of(context)
    if len(steps) < 2:
        return None
    model = step_model(context)
    baseline = _same_baseline(context, steps[0].point)
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
        f"forward costs {_ms(model.found.of((0.0, 1.0, 0.0)))}, each further token to verify "
        f"{_ms(model.per_token)}. "
        f"The baseline's step, {_baseline_ms(context, baseline):.1f} ms, is what verifying one token takes. "
        f"Overhead is what is left. {context.noise_words}.",
        tuple(Evidence(name, _ms(part), numbers([step.point for step in steps])) for name, part in parts.items()),
        _ADVICE[largest],
    )


_ADVICE = {
    "draft": "Fewer steps, or a smaller draft model; see that its backend runs inside CUDA graphs.",
    "verify": "Verifying is most of it, as it should be: gains come from acceptance, not from cheaper drafts.",
    "overhead": "Look at CUDA graphs, the overlapping schedule and the CPU: that time is neither drafting nor "
    "verifying.",
}


def memory_bound(context: Context) -> Finding | None:
    """Whether verifying more tokens is nearly free, or dear."""
    model = step_model(context)
    baseline = _same_baseline(context, model.steps[0].point) if model else None
    if model is None or not model.has_tokens or baseline is None:
        return None
    share = model.per_token.scaled(1 / _baseline_ms(context, baseline))
    told = f"{100 * share.value:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f})"
    evidence = (
        Evidence(
            "a further verified token, of a step without drafts", told, numbers([s.point for s in model.steps])
        ),
    )
    if share.high < CHEAP_TOKEN:
        return Finding(
            "memory_bound",
            Severity.NOTE,
            "Decoding is memory-bound: verifying further draft tokens is nearly free",
            f"A further token costs {told} of a step without drafts: the weights are read once for all of them.",
            evidence,
            "Use wider trees (topk 2 to 4 with more draft tokens): what they add in acceptance costs almost "
            "nothing.",
        )
    if share.low > DEAR_TOKEN:
        return Finding(
            "compute_bound",
            Severity.NOTE,
            "Verifying draft tokens is dear here",
            f"A further token costs {told} of a step without drafts. Wide trees do not pay at this load.",
            evidence,
            "Prefer chains (topk 1) with few steps; with fewer requests under way tokens would be cheaper.",
        )
    return None


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
        said = (
            f"One more step, its draft forward and the token that is verified for it, costs {_ms(model.per_step)}."
        )
        next_step = "One tree (topk 2 and more draft tokens than steps + 1) would tell the two apart."
    else:
        why = "the baseline was not measured under the same settings" if not has_baseline else ""
        said = (
            f"A draft forward costs {_ms(model.found.of((0.0, 1.0, 0.0)))}, a further token to verify "
            f"{_ms(model.per_token)}; how much of the rest is the target model's own step is open."
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
    """Milliseconds of the step `at`. The baseline's own noise enters what is left."""
    base_ms = _baseline_ms(context, baseline)
    base_variance = base_ms**2 * context.noise.variance / baseline.num_launches
    verify = model.found.of((0.0, 0.0, at.tokens - 1.0))
    rest = model.found.of((1.0, -1.0, 0.0))
    spread = ((rest.high - rest.low) / 2) ** 2 + (_reach(base_variance, context)) ** 2
    left = rest.value - base_ms
    return {
        "draft": model.found.of((0.0, float(at.num_steps), 0.0)),
        "verify": Interval(base_ms + verify.value, base_ms + verify.low, base_ms + verify.high),
        "overhead": Interval(left, left - spread**0.5, left + spread**0.5),
    }


def _reach(variance: float, context: Context) -> float:
    found = around(0.0, variance, context.noise.degrees)
    return found.high


def _step(context: Context, point: Point) -> Step | None:
    """None without an exact accept_length or the numbers of the draft."""
    roles, has = context.roles, point.accept_length
    if roles is None or has is None or has.low != has.high or not context.is_throughput:
        return None
    num_steps = point.whole(roles.num_steps)
    tokens = point.whole(roles.draft_tokens) if roles.draft_tokens else None
    if num_steps is None or num_steps < 1:
        return None
    if tokens is None:
        tokens = num_steps + 1 if not roles.topk else None
    return (
        None
        if tokens is None
        else Step(point, 1000 * has.low * context.concurrency / point.value, num_steps, tokens)
    )


def _numbers_of_draft(context: Context) -> set[str]:
    roles = context.roles
    return {roles.num_steps, roles.topk, roles.draft_tokens} if roles else set()


def _rest(context: Context, point: Point) -> Hashable:
    left = _numbers_of_draft(context)
    return tuple(sorted((n, str(v)) for n, v in point.settings.items() if n not in left and v is not False))


def _same_baseline(context: Context, point: Point) -> Point | None:
    """A point that does not draft and has the same other settings."""
    roles = context.roles
    if roles is None:
        return None
    ours = {n: v for n, v in point.settings.items() if not _is_drafting(n, context) and v is not False}
    for other in context.points:
        theirs = {n: v for n, v in other.settings.items() if v is not False}
        if not other.drafts and theirs == ours:
            return other
    return None


def _is_drafting(name: str, context: Context) -> bool:
    """Whether a setting belongs to speculation: the baseline has none of these."""
    return bool(context.roles and name in context.roles.names) or name.startswith("speculative_")


def _baseline_ms(context: Context, baseline: Point) -> float:
    return 1000 * context.concurrency / baseline.value


def _ms(interval: Interval) -> str:
    return f"{interval.value:.2f} ms ({interval.low:.2f} to {interval.high:.2f})"
