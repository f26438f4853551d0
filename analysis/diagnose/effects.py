"""What CUDA graphs, NCCL and the numbers of a draft bring, with intervals; what that says of the bottleneck."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.diagnose.compared import (
    best_of_each,
    evidence_of,
    graphs,
    how,
    setting_text,
    settings,
    title_of,
    words_of,
)
from analysis.diagnose.context import Context, pct_text, percent
from analysis.diagnose.contrasts import CONFOUNDED, Contrast, Question, closest, contrast, values_of
from analysis.diagnose.finding import Finding, Severity

MAX_PAIRS = 4

WORTH_PCT = 1.0
"""Smaller differences of other flags are not worth a line, even if they are certain."""


def cuda_graphs(context: Context) -> Finding | None:
    """What CUDA graphs bring."""
    found = graphs(context)
    if found is None:
        return None
    text, next_step = (
        words_of(found),
        "Keep CUDA graphs on; see that the log says cuda graph: True at your batch sizes.",
    )
    shown = [found]
    if found.kind == CONFOUNDED:
        shown = closest(context, Question(context.no_graphs, False, True))
        next_step = f"Launch one of the two once more with only {context.no_graphs} changed."
    elif not found.log_ratio.excludes_zero:
        next_step = "Leave them on: they cost memory, and nothing else."
    return Finding(
        "cuda_graphs",
        Severity.LIMIT if found.is_clean and found.log_ratio.excludes_zero else Severity.NOTE,
        f"CUDA graphs: {title_of(found)}",
        f"{text} {context.noise_words}.",
        tuple(evidence_of("with CUDA graphs against without", one) for one in shown[:MAX_PAIRS]),
        next_step,
    )


def nccl(context: Context) -> Finding | None:
    """What each setting of NCCL brings over the slowest one of its variable."""
    found = best_of_each(context, [n for n in settings(context) if n.startswith("env.NCCL_")])
    return _listed(
        "nccl", "NCCL", context, found, "Set the faster value for good; time more settings with probe.nccl=true."
    )


def num_steps(context: Context) -> Finding | None:
    """What more draft steps bring, from one number to the next."""
    name = context.roles.num_steps if context.roles else ""
    return _neighbours(
        context, "num_steps", name, "steps", "Keep the smaller number: it drafts less for the same speed."
    )


def draft_tokens(context: Context) -> Finding | None:
    """What more draft tokens bring, from one number to the next."""
    name = context.roles.draft_tokens if context.roles else ""
    return _neighbours(context, "draft_tokens", name, "draft tokens", "Keep the smaller number: it verifies less.")


def other_settings(context: Context) -> Finding | None:
    """Every other setting that certainly changes something."""
    roles = context.roles.names if context.roles else ()
    names = [
        n for n in settings(context) if n != context.no_graphs and n not in roles and not n.startswith("env.NCCL_")
    ]
    found = [one for one in best_of_each(context, names) if one.is_clean and one.log_ratio.excludes_zero]
    found = [one for one in found if percent(one.log_ratio).value >= WORTH_PCT]
    return _listed("other_settings", "Other settings", context, found, "Set the faster value for good.")


def _listed(rule: str, title: str, context: Context, found: Sequence[Contrast], next_step: str) -> Finding | None:
    """A finding of several settings, the largest effect first; none where nothing was compared."""
    if not found:
        return None
    order = sorted(found, key=lambda one: -one.log_ratio.low)
    sure = [one for one in order if one.log_ratio.low > 0]
    if sure:
        head = f"{title}: {setting_text(sure[0])} brings {pct_text(percent(sure[0].log_ratio))}"
    else:
        head = f"{title}: no setting makes a difference that these trials can show"
        next_step = "Leave the defaults; more launches of the two fastest would show smaller differences."
    names = ", ".join(setting_text(one) for one in order[:4])
    return Finding(
        rule,
        Severity.LIMIT if sure else Severity.NOTE,
        head,
        f"Compared: {names}. {how(order[0])} {context.noise_words}.",
        tuple(evidence_of(setting_text(one), one) for one in order),
        next_step,
    )


def _neighbours(context: Context, rule: str, name: str, noun: str, tie_step: str) -> Finding | None:
    """Each number against the one before it, among what drafts."""
    found = [v for v in values_of(context.drafting, name) if type(v) is int] if name else []
    numbers = sorted(v for v in found if isinstance(v, int))
    pairs = [(a, b) for a, b in zip(numbers[1:], numbers, strict=False)]
    asked = [Question(name, a, b, len(pairs)) for a, b in pairs]
    made = [one for question in asked if (one := contrast(context, question)) is not None]
    if not made:
        return None
    clean = [one for one in made if one.is_clean]
    told = [one for one in (clean or made) if one.log_ratio.excludes_zero] or clean or made
    head = max(
        told, key=lambda one: abs(one.log_ratio.value) / (one.log_ratio.high - one.log_ratio.low or math.inf)
    )
    against = f"{head.ours} against {head.theirs} {noun}"
    if not head.log_ratio.excludes_zero:
        title = f"{against} cannot be told apart from what was recorded: {pct_text(percent(head.log_ratio))}"
        next_step = tie_step if head.is_clean else _mend(head)
    elif head.is_clean:
        title, next_step = f"{against}: {pct_text(percent(head.log_ratio))}", _keep(head, noun)
    else:
        title, next_step = f"{against}: {title_of(head)}", _mend(head)
    return Finding(
        rule,
        Severity.NOTE,
        title,
        f"{words_of(head)} {context.noise_words}.",
        tuple(evidence_of(f"{one.ours} against {one.theirs} {noun}", one) for one in made),
        next_step,
    )


def _keep(found: Contrast, noun: str) -> str:
    better = found.ours if found.log_ratio.value > 0 else found.theirs
    return f"Keep {better} {noun} where all else is as in these trials."


def _mend(found: Contrast) -> str:
    return f"Launch both again, with only {found.setting} changed, several times each."
