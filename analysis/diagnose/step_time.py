"""Where the time of a step goes: drafting, verifying, and what is left, told by the trials themselves.

    step time = base + forward x (steps - 1) + token x (draft tokens - 1)

over trials that differ in nothing but the numbers of the draft. A step time is accept_length over throughput, so
prefill and the client's share are in it. The baseline's step is what verifying a single token takes; what neither
drafting nor verifying explains is overhead: launching, sampling, the schedule.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from analysis.diagnose.context import Context, Point
from sweeper.statistics.least_squares import Fit, Interval, fit


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
    largest = sorted(groups.values(), key=lambda steps: -len(steps))[:1]
    return tuple(step for steps in largest for step in steps)


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
    return point.items - {(name, str(point.settings[name])) for name in left if name in point.settings}


def same_baseline(context: Context, point: Point) -> Point | None:
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
    return context.roles is not None and context.roles.is_drafting(name)


def baseline_ms(context: Context, baseline: Point) -> float:
    """What a step of the baseline takes, in ms."""
    return 1000 * context.concurrency / baseline.value


def ms_text(interval: Interval) -> str:
    """`1.50 ms (1.20 to 1.80)`."""
    return f"{interval.value:.2f} ms ({interval.low:.2f} to {interval.high:.2f})"
