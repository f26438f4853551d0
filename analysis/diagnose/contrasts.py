"""What one setting brings: from trials that differ in nothing else where there are such, else by a model, else
named.

Three kinds of evidence, the best one that there is:
- `paired`: trials that differ in this setting alone. Several pairs are pooled; where pairs differ among themselves
  more than noise would make them, that spread decides.
- `model`: the logarithm of the objective as a sum of what each setting adds, over all trials that draft alike.
- `confounded`: the closest pair; something else changed as well, and nothing can be said of this setting alone.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from analysis.diagnose.context import Context, Point, Settings
from sweeper.spec import FlagValue
from sweeper.statistics.least_squares import Interval, around, fit, independent
from sweeper.statistics.stats import f_above

PAIRED, MODEL, CONFOUNDED = "paired", "model", "confounded"

NOT_GIVEN = "not given"

UNEVEN_PAIRS = 0.1
"""When chance would make pairs differ among themselves so much, or more, this rarely, their own spread decides."""

MAX_MODELLED, MAX_CLOSE = 150, 25
"""Of each value so many of the fastest trials are looked at: the slow ones of a long night decide nothing."""

Value = FlagValue | None
"""A setting's value; None where it is left away, or was not told."""


@dataclass(frozen=True)
class Contrast:
    """One value of a setting against another. `log_ratio`: of the objective, theirs in the denominator.

    `also`: what else differs (confounded only). `num_pairs`: pairs of trials that were pooled.
    """

    setting: str
    ours: Value
    theirs: Value
    log_ratio: Interval
    kind: str
    trials: tuple[int, ...]
    num_pairs: int = 1
    also: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether the difference is this setting's own."""
        return self.kind != CONFOUNDED

    @property
    def also_words(self) -> str:
        """What else changed, or may have: of a value that was not given nobody knows."""
        verb = "may have changed" if all(NOT_GIVEN in one for one in self.also) else "changed"
        return f"{' and '.join(self.also)} {verb} as well"


@dataclass(frozen=True)
class Question:
    """What value `ours` of a setting does against `theirs`. `of`: so many such questions are asked together."""

    setting: str
    ours: Value
    theirs: Value
    of: int = 1


def contrast(context: Context, asked: Question) -> Contrast | None:
    """The best evidence on what is asked; None without trials of both values."""
    pairs = _pairs(context, asked)
    if pairs:
        return _pooled(context, asked, pairs)
    if (modelled := _modelled(context, asked)) is not None:
        return modelled
    return next(iter(closest(context, asked)), None)


def values_of(points: Sequence[Point], setting: str) -> list[Value]:
    """The setting's values, in order; a bare flag that is left away is false."""
    found = dict.fromkeys(point.settings.get(setting) for point in points)
    is_bare = all(value is None or isinstance(value, bool) for value in found)
    known = dict.fromkeys(False if is_bare and value is None else value for value in found)
    return sorted(known, key=lambda value: (value is None, isinstance(value, str), str(value).zfill(12)))


def _rest(context: Context, point: Point, setting: str) -> Hashable:
    """Everything else, to be compared. In a chain the number of draft tokens follows from that of steps."""
    left = {setting} | _implied(context, point, setting)
    return point.items - {(name, str(point.settings[name])) for name in left if name in point.settings}


def _implied(context: Context, point: Point, setting: str) -> set[str]:
    roles = context.roles
    if roles is None or setting != roles.num_steps or point.settings.get(roles.topk) != 1:
        return set()
    return {roles.draft_tokens}


def _with(context: Context, setting: str, value: Value) -> list[Point]:
    """The points with this value, the fastest first; a bare flag that is left away is false."""
    found = context.having(setting, value)
    if value is not False:
        return found
    return sorted([*found, *context.having(setting, None)], key=lambda point: -point.log_value)


def _pairs(context: Context, asked: Question) -> list[tuple[Point, Point]]:
    """Points that differ in the setting alone."""
    setting = asked.setting
    by_rest = {_rest(context, point, setting): point for point in _with(context, setting, asked.theirs)}
    return [
        (point, twin)
        for point in _with(context, setting, asked.ours)
        if (twin := by_rest.get(_rest(context, point, setting))) is not None and twin is not point
    ]


def _pooled(context: Context, asked: Question, pairs: Sequence[tuple[Point, Point]]) -> Contrast:
    """The weighted mean of the pairs; of several that differ among themselves, with their own spread."""
    logs = [a.log_value - b.log_value for a, b in pairs]
    weights = [1 / (1 / a.num_launches + 1 / b.num_launches) for a, b in pairs]
    mean = math.fsum(w * x for w, x in zip(weights, logs, strict=True)) / sum(weights)
    variance, degrees = context.noise.variance / sum(weights), context.noise.degrees
    among = statistics.variance(logs) / len(logs) if len(pairs) > 1 else 0.0
    if among > variance and f_above(among / variance, len(pairs) - 1, degrees) < UNEVEN_PAIRS:
        variance, degrees = among, len(pairs) - 1
    numbers = tuple(sorted({point.number for pair in pairs for point in pair}))
    effect = around(mean, variance, degrees, asked.of)
    return Contrast(asked.setting, asked.ours, asked.theirs, effect, PAIRED, numbers, len(pairs))


def _modelled(context: Context, asked: Question) -> Contrast | None:
    """The setting's coefficient beside those of all other settings, over the points that draft alike or not at
    all.

    None where the trials do not tell the setting's share from the others', and for what shapes the drafts: that
    does not add up.
    """
    if _shapes(context, asked.setting):
        return None
    points, own, others = _design(context, asked)
    columns = independent([*others, own])
    if own not in columns[-1:] or len(points) <= len(
        columns
    ):  # at least one is left to see whether the model holds
        return None
    weights = [float(point.num_launches) for point in points]
    design = [list(row) for row in zip(*columns, strict=True)]
    found = fit(design, [point.log_value for point in points], weights, context.noise)
    if found is None:
        return None
    effect = found.of([*(0.0 for _ in columns[1:]), 1.0], asked.of)
    numbers = tuple(sorted(point.number for point in points))
    return Contrast(asked.setting, asked.ours, asked.theirs, effect, MODEL, numbers, 0)


def _design(context: Context, asked: Question) -> tuple[list[Point], list[float], list[list[float]]]:
    """The fastest points with either value, the column that says which, and those of what else differs.

    That is the shape of the drafts, and each value of each other setting.
    """
    having = _with(context, asked.setting, asked.ours)[:MAX_MODELLED]
    others = [point for point in _with(context, asked.setting, asked.theirs) if point not in having]
    points = [*having, *others[:MAX_MODELLED]]
    blocks = [_block(context, point) for point in points]
    columns = [[float(each == block) for each in blocks] for block in dict.fromkeys(blocks)]
    names = dict.fromkeys(name for point in points for name in point.settings)
    for name in names:
        if name != asked.setting and not _shapes(context, name):
            values = [str(point.settings.get(name)) for point in points]
            columns += [[float(value == level) for value in values] for level in list(dict.fromkeys(values))[1:]]
    return points, [float(point in having) for point in points], columns


def _shapes(context: Context, name: str) -> bool:
    return context.roles is not None and name in context.roles.names


def _block(context: Context, point: Point) -> Hashable:
    """What shapes the drafts: points of one block differ in system flags only."""
    names = context.roles.names if context.roles else ()
    return tuple((name, point.settings.get(name)) for name in names)


def closest(context: Context, asked: Question) -> list[Contrast]:
    """The pairs with the fewest other differences; first the one with the smallest effect: it claims least."""
    setting, found = asked.setting, list[Contrast]()
    for a in _with(context, setting, asked.ours)[:MAX_CLOSE]:
        for b in _with(context, setting, asked.theirs)[:MAX_CLOSE]:
            if a is b or a.drafts != b.drafts:
                continue
            also = _differences(a.settings, b.settings, setting)
            numbers = tuple(sorted((a.number, b.number)))
            effect = context.log_ratio(a, b, asked.of)
            found.append(Contrast(setting, asked.ours, asked.theirs, effect, CONFOUNDED, numbers, 1, also))
    fewest = min((len(one.also) for one in found), default=0)
    return sorted((one for one in found if len(one.also) == fewest), key=lambda one: abs(one.log_ratio.value))


def _differences(ours: Settings, theirs: Settings, setting: str) -> tuple[str, ...]:
    """The other settings that differ, with both values; one that is missing was left away, or was not told."""
    names = dict.fromkeys((*ours, *theirs))
    return tuple(
        f"{name} ({_told(ours.get(name), theirs.get(name))} against {_told(theirs.get(name), ours.get(name))})"
        for name in names
        if name != setting and (ours.get(name) or None) != (theirs.get(name) or None)
    )


def _told(value: Value, other: Value) -> str:
    """A value in words; a bare flag that is left away is false."""
    if value is None:
        return "false" if isinstance(other, bool) else NOT_GIVEN
    return str(value).lower() if isinstance(value, bool) else str(value)
