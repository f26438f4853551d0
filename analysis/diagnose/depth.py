"""How deep to draft: acceptance by position, and the depth beyond which a step costs more than it brings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import zip_longest

from analysis.diagnose.context import Context, Point
from analysis.diagnose.finding import Evidence, Finding, Severity
from analysis.diagnose.step_time import Model, step_model
from sweeper.statistics.least_squares import Interval

MIN_VERIFY_STEPS = 100
"""Shares of fewer steps are too uncertain to be shown."""

MAX_SHOWN = 12

_WIDE = 2.8
"""Standard errors on each side: 1.96 for 95 %, times 1.4, since the steps of one text resemble each other."""


@dataclass(frozen=True)
class Kept:
    """What a trial kept. `spans`: shares of its verify steps that kept the first, second, ... draft."""

    point: Point
    spans: tuple[Interval, ...]
    num_verify_steps: float

    @property
    def listed(self) -> str:
        """The shares in percent."""
        return ", ".join(f"{100 * span.value:.0f}" for span in self.spans[:MAX_SHOWN])

    @property
    def words(self) -> str:
        """The shares in a sentence."""
        return (
            f"Of {self.num_verify_steps:.0f} verify steps, {self.listed} % kept the first, second, ... draft in "
            f"trial {self.point.number}."
        )

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """A line for each position."""
        shown = enumerate(self.spans[:MAX_SHOWN], 1)
        return tuple(Evidence(f"draft {n} kept", _pct(span), (self.point.number,)) for n, span in shown)


def positions(context: Context) -> Finding | None:
    """Acceptance by position of the deepest drafts, and where further ones stop to pay."""
    kept = _deepest(context)
    if kept is None:
        return None
    if (model := step_model(context)) is not None:
        return _with_cost(context, kept, model)
    return Finding(
        "positions",
        Severity.NOTE,
        f"Acceptance by position: {kept.listed} %",
        f"{kept.words} What a further step costs cannot be told from what was measured.",
        kept.evidence,
        "Measure two more numbers of steps, all else equal: then the depth that pays can be told.",
    )


def _with_cost(context: Context, kept: Kept, model: Model) -> Finding:
    """A further step pays when it keeps more tokens than the server would write in the time that it takes.

    The first draft is another question: with it come all costs of speculation (see break_even).
    """
    rate = model.fastest.point.value / context.concurrency / 1000
    cost, needed = model.per_step, model.per_step.scaled(rate)
    text = (
        f"{kept.words} One more step costs {cost.value:.2f} ms ({cost.low:.2f} to {cost.high:.2f}), in which the "
        f"fastest of these trials writes {needed.value:.2f} tokens: a further draft pays when it is kept in "
        f"more than "
        f"{_pct(needed)} of the steps. {context.noise_words}."
    )
    evidence = (*kept.evidence, Evidence("kept steps that a further draft needs", _pct(needed)))
    costs = [n for n, span in enumerate(kept.spans, 1) if n > 1 and span.high < needed.low]
    pays = [n for n, span in enumerate(kept.spans, 1) if span.low > needed.high]
    if costs:
        last = costs[0] - 1
        title = f"Beyond draft {last} each further step costs more than it brings"
        next_step = f"Use {last} step{'s' if last > 1 else ''} with this drafter, or fewer."
        severity = Severity.LIMIT if model.fastest.num_steps > last else Severity.NOTE
        return Finding("positions", severity, title, text, evidence, next_step)
    title = f"Drafts up to {pays[-1]} pay" if pays else "Which depth pays cannot be told"
    next_step = "Try one step more." if pays and pays[-1] == len(kept.spans) else "Launch the deepest ones again."
    return Finding("positions", Severity.NOTE, title, text, evidence, next_step)


def _pct(share: Interval) -> str:
    return f"{100 * share.value:.0f} % ({100 * share.low:.0f} to {100 * share.high:.0f})"


def _deepest(context: Context) -> Kept | None:
    """The trial with the most positions that were counted often enough; of equals the fastest."""
    found = []
    for point in context.drafting:
        shares, count = _survival(point)
        if shares and count >= MIN_VERIFY_STEPS:
            found.append(Kept(point, tuple(_span(share, count) for share in shares), count))
    return max(found, key=lambda kept: len(kept.spans), default=None)


def _survival(point: Point) -> tuple[tuple[float, ...], float]:
    """The share of verify steps that kept the first, second, ...

    draft, over all launches, and how many there were.
    """
    counted = [
        (launch.accepted_per_position, launch.metrics["num_verify_steps"])
        for launch in point.trial.measured
        if launch.accepted_per_position and launch.metrics.get("num_verify_steps")
    ]
    total = math.fsum(steps for _, steps in counted)
    if not total:
        return (), 0.0
    sums = (sum(at) for at in zip_longest(*(accepted for accepted, _ in counted), fillvalue=0))
    shares = [min(1.0, each / total) for each in sums]
    while shares and not shares[-1]:
        shares.pop()
    return tuple(shares), total


def _span(share: float, count: float) -> Interval:
    reach = _WIDE * math.sqrt(max(share * (1 - share), 1 / count) / count)
    return Interval(share, max(0.0, share - reach), min(1.0, share + reach))
