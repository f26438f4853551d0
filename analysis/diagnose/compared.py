"""Settings compared, and how a comparison is put into words."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.diagnose.context import Context, pct_text, percent
from analysis.diagnose.contrasts import (
    CONFOUNDED,
    MODEL,
    PAIRED,
    Contrast,
    Question,
    Value,
    contrast,
    values_of,
)
from analysis.diagnose.finding import Evidence

MAX_VALUES = 6
"""Of one setting; all pairs of them are compared."""


def graphs(context: Context) -> Contrast | None:
    """With CUDA graphs against without; None where every trial had them."""
    if not {True} & {point.settings.get(context.no_graphs) for point in context.points}:
        return None
    return contrast(context, Question(context.no_graphs, False, True))


def settings(context: Context) -> list[str]:
    """Names of the settings that have more than one value."""
    names = dict.fromkeys(name for point in context.points for name in point.settings)
    return [name for name in names if len(values_of(context.points, name)) > 1]


def best_of_each(context: Context, names: Sequence[str]) -> list[Contrast]:
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


def setting_text(found: Contrast) -> str:
    """`NCCL_PROTO=LL against Simple`."""
    return f"{found.setting.removeprefix('env.')}={_value(found.ours)} against {_value(found.theirs)}"


def _value(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def title_of(found: Contrast) -> str:
    """The effect; with what else changed where something did."""
    effect = percent(found.log_ratio)
    if found.kind == CONFOUNDED:
        return f"{pct_text(effect)}, but {found.also_words}"
    if not found.log_ratio.excludes_zero:
        return f"no difference that these trials can show: {pct_text(effect)}"
    return pct_text(effect)


def words_of(found: Contrast) -> str:
    """How the effect was found."""
    if found.kind == CONFOUNDED:
        return (
            f"No two trials differ in {found.setting} alone. In the closest two (trials "
            f"{' and '.join(map(str, found.trials))}) {found.also_words}: the difference is that of all of it."
        )
    return how(found)


def how(found: Contrast) -> str:
    """By which evidence an effect was found."""
    if found.kind == PAIRED:
        pairs = "one pair" if found.num_pairs == 1 else f"{found.num_pairs} pairs"
        return f"From {pairs} of trials that differ in nothing else."
    if found.kind == MODEL:
        return "No two trials differ in nothing else: by a model in which the effects of settings multiply."
    return words_of(found)


def evidence_of(what: str, found: Contrast) -> Evidence:
    """The effect as a line of numbers."""
    kind = {PAIRED: "paired", MODEL: "by the model"}.get(found.kind, found.also_words)
    return Evidence(what, f"{pct_text(percent(found.log_ratio))}, {kind}", found.trials)
