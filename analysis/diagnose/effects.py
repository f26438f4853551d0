"""What CUDA graphs, NCCL and the numbers of a draft bring, with intervals; what that says of the bottleneck."""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.diagnose.context import Context, pct_text, percent
from analysis.diagnose.contrasts import (
    CONFOUNDED,
    MODEL,
    PAIRED,
    Contrast,
    Question,
    Value,
    closest,
    contrast,
    values_of,
)
from analysis.diagnose.finding import Evidence, Finding, Severity

GRAPHS = "disable_cuda_graph"

LAUNCH_BOUND_PCT = 15.0
"""What a CUDA graph saves is the time to launch kernels one by one: 25 to 60 % on published single-stream runs.
Above this the GPU waits for the CPU."""

COMMUNICATION_BOUND_PCT = 3.0
"""A variable of NCCL changes nothing but collectives: if it moves throughput by so much, they are a fair part of
a step (published PCIe hosts: 5 to 10 %)."""

MAX_PAIRS = 4

MAX_VALUES = 6
"""Of one setting; all pairs of them are compared."""

WORTH_PCT = 1.0
"""Smaller differences of other flags are not worth a line, even if they are certain."""


def cuda_graphs(context: Context) -> Finding | None:
    """What CUDA graphs bring."""
    found = _graphs(context)
    if found is None:
        return None
    text, next_step = (
        _words(found),
        "Keep CUDA graphs on; see that the log says cuda graph: True at your batch sizes.",
    )
    shown = [found]
    if found.kind == CONFOUNDED:
        shown = closest(context, Question(GRAPHS, False, True))
        next_step = "Launch one of the two once more with only disable_cuda_graph changed."
    elif not found.log_ratio.excludes_zero:
        next_step = "Leave them on: they cost memory, and nothing else."
    return Finding(
        "cuda_graphs",
        Severity.LIMIT if found.is_clean and found.log_ratio.excludes_zero else Severity.NOTE,
        f"CUDA graphs: {_title(found)}",
        f"{text} {context.noise_words}.",
        tuple(_evidence("with CUDA graphs against without", one) for one in shown[:MAX_PAIRS]),
        next_step,
    )


def launch_bound(context: Context) -> Finding | None:
    """Whether decoding without graphs waits for the CPU."""
    found = _graphs(context)
    if found is None or not found.is_clean or percent(found.log_ratio).low < LAUNCH_BOUND_PCT:
        return None
    return Finding(
        "launch_bound",
        Severity.NOTE,
        "Without CUDA graphs this server is launch-bound",
        f"Graphs bring {pct_text(percent(found.log_ratio))}. They save nothing but the launching of kernels, so "
        f"without "
        "them the GPU waits for the CPU. Whatever runs outside of a graph (a batch size that was not captured, "
        "a backend "
        "without graphs for its drafts) pays that price.",
        (_evidence("with CUDA graphs against without", found),),
        "Capture every batch size that you serve (cuda_graph_max_bs), and prefer backends that draft inside "
        "graphs.",
    )


def _graphs(context: Context) -> Contrast | None:
    if not {True} & {point.settings.get(GRAPHS) for point in context.points}:
        return None
    return contrast(context, Question(GRAPHS, False, True))


def nccl(context: Context) -> Finding | None:
    """What each setting of NCCL brings over the slowest one of its variable."""
    found = _best_of_each(context, [n for n in _settings(context) if n.startswith("env.NCCL_")])
    return _listed(
        "nccl", "NCCL", context, found, "Set the faster value for good; time more settings with probe.nccl=true."
    )


def communication_bound(context: Context) -> Finding | None:
    """Whether collectives are a fair part of a step."""
    found = _best_of_each(context, [name for name in _settings(context) if name.startswith("env.NCCL_")])
    telling = [one for one in found if one.is_clean and percent(one.log_ratio).low >= COMMUNICATION_BOUND_PCT]
    if not telling:
        return None
    best = max(telling, key=lambda one: one.log_ratio.value)
    return Finding(
        "communication_bound",
        Severity.LIMIT,
        "Communication between the GPUs is a fair part of each step",
        f"{_setting(best)} alone brings {pct_text(percent(best.log_ratio))}. NCCL's variables change nothing but "
        "collectives: what they save was communication.",
        tuple(_evidence(_setting(one), one) for one in telling),
        "Try further protocols, channels and P2P levels (probe.nccl=true times them without a server), fewer "
        "GPUs per "
        "server, or a host with NVLink.",
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
    names = [n for n in _settings(context) if n != GRAPHS and n not in roles and not n.startswith("env.NCCL_")]
    found = [one for one in _best_of_each(context, names) if one.is_clean and one.log_ratio.excludes_zero]
    found = [one for one in found if percent(one.log_ratio).value >= WORTH_PCT]
    return _listed("other_settings", "Other settings", context, found, "Set the faster value for good.")


def _settings(context: Context) -> list[str]:
    """Names of the settings that have more than one value."""
    names = dict.fromkeys(name for point in context.points for name in point.settings)
    return [name for name in names if len(values_of(context.points, name)) > 1]


def _best_of_each(context: Context, names: Sequence[str]) -> list[Contrast]:
    """Per setting the value that brings most over another, by the best evidence that there is."""
    values = {name: [v for v in values_of(context.points, name) if v is not None][:MAX_VALUES] for name in names}
    of = max(1, sum(len(each) * (len(each) - 1) // 2 for each in values.values()))
    found = []
    for name, each in values.items():
        made = [contrast(context, Question(name, a, b, of)) for a in each for b in each if a != b]
        known = [one for one in made if one is not None and one.is_clean]
        if known:
            found.append(max(known, key=lambda one: one.log_ratio.low))
    return found


def _listed(rule: str, title: str, context: Context, found: Sequence[Contrast], next_step: str) -> Finding | None:
    """A finding of several settings, the largest effect first; none where nothing was compared."""
    if not found:
        return None
    order = sorted(found, key=lambda one: -one.log_ratio.low)
    sure = [one for one in order if one.log_ratio.low > 0]
    if sure:
        head = f"{title}: {_setting(sure[0])} brings {pct_text(percent(sure[0].log_ratio))}"
    else:
        head = f"{title}: no setting makes a difference that these trials can show"
        next_step = "Leave the defaults; more launches of the two fastest would show smaller differences."
    names = ", ".join(_setting(one) for one in order[:4])
    return Finding(
        rule,
        Severity.LIMIT if sure else Severity.NOTE,
        head,
        f"Compared: {names}. {_how(order[0])} {context.noise_words}.",
        tuple(_evidence(_setting(one), one) for one in order),
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
        title, next_step = f"{against}: {_title(head)}", _mend(head)
    return Finding(
        rule,
        Severity.NOTE,
        title,
        f"{_words(head)} {context.noise_words}.",
        tuple(_evidence(f"{one.ours} against {one.theirs} {noun}", one) for one in made),
        next_step,
    )


def _keep(found: Contrast, noun: str) -> str:
    better = found.ours if found.log_ratio.value > 0 else found.theirs
    return f"Keep {better} {noun} where all else is as in these trials."


def _mend(found: Contrast) -> str:
    return f"Launch both again, with only {found.setting} changed, several times each."


def _setting(found: Contrast) -> str:
    return f"{found.setting.removeprefix('env.')}={_value(found.ours)} against {_value(found.theirs)}"


def _value(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _title(found: Contrast) -> str:
    """The effect; with what else changed where something did."""
    effect = percent(found.log_ratio)
    if found.kind == CONFOUNDED:
        return f"{pct_text(effect)}, but {found.also_words}"
    if not found.log_ratio.excludes_zero:
        return f"no difference that these trials can show: {pct_text(effect)}"
    return pct_text(effect)


def _words(found: Contrast) -> str:
    """How the effect was found."""
    if found.kind == CONFOUNDED:
        return (
            f"No two trials differ in {found.setting} alone. In the closest two (trials "
            f"{' and '.join(map(str, found.trials))}) {found.also_words}: the difference is that of all of it."
        )
    return _how(found)


def _how(found: Contrast) -> str:
    if found.kind == PAIRED:
        pairs = "one pair" if found.num_pairs == 1 else f"{found.num_pairs} pairs"
        return f"From {pairs} of trials that differ in nothing else."
    if found.kind == MODEL:
        return "No two trials differ in nothing else: by a model in which the effects of settings multiply."
    return _words(found)


def _evidence(what: str, found: Contrast) -> Evidence:
    how = {PAIRED: "paired", MODEL: "by the model"}.get(found.kind, found.also_words)
    return Evidence(what, f"{pct_text(percent(found.log_ratio))}, {how}", found.trials)
