"""What single parameters do to a value, all others being equal, and which pairs of them work together. Pure.

A value's logarithm is taken as a sum: one term for each parameter's level. Terms that the trials cannot tell
apart (two parameters that were always changed together) are absent rather than shared out by chance. A pair works
together where a term of its own for it lowers what remains by more than chance would: an F-test, the p-values of
all pairs corrected as Holm does. Trials that a search has chosen are no random sample: an effect holds near where
it has looked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from sweeper.statistics.least_squares import solve, spanning
from sweeper.statistics.stats import CONFIDENCE, exp, t_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

MAX_LEVELS = 8
"""A parameter with more values is cut into ranges, or its rarest values are put together."""

MAX_PARAMETERS = 16
MIN_DEGREES = 5
"""So many trials more than terms are needed; with fewer nothing is said."""

SIGNIFICANT = 0.05
NOT_SET = "not set"
_OTHERS = "others"

Setting = bool | int | float | str


@dataclass(frozen=True)
class Effect:
    """What one level of a parameter does against the level that most trials have, in percent.

    `low` to `high` is the two-sided 90 % interval. All three are absent where the trials cannot tell: `reference`
    says that this is the level the others are compared with.
    """

    parameter: str
    level: str
    num_trials: int
    reference: bool = False
    pct: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Interaction:
    """Two parameters that work together. `p` is corrected for the number of pairs.

    `levels`: their combination differs most from the sum of both, by `pct` percent in `num_trials` trials.
    """

    parameters: tuple[str, str]
    p: float
    levels: tuple[str, str]
    pct: float
    num_trials: int


@dataclass(frozen=True)
class Effects:
    """`left_pct`: standard deviation of what the terms leave open, in percent; from `num_trials` trials."""

    effects: tuple[Effect, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    num_trials: int = 0
    left_pct: float | None = None


def effects_of(settings: Sequence[Mapping[str, Setting]], values: Sequence[float]) -> Effects:
    """The effects of all parameters that differ between `settings`. `values`: above 0, one per setting.

    Without enough trials for the number of terms only how often each level was tried.
    """
    import numpy as np

    factors = _factors(settings)
    model = _Model.of(factors, len(values))
    counted = tuple(
        Effect(name, level, levels.count(level), reference=level == model.references[name])
        for name, levels in factors.items()
        for level in _in_order(set(levels))
    )
    if not counted or model.degrees < MIN_DEGREES:
        return Effects(counted, (), len(values))
    logs = np.log(np.asarray(values, dtype=float))
    fit = _Fit.of(model, logs - logs.mean())
    return Effects(
        tuple(each if each.reference else fit.effect(each) for each in counted),
        _interactions(factors, model, fit),
        len(values),
        100 * math.sqrt(fit.variance),
    )


@dataclass(frozen=True)
class _Model:
    """The matrix of all terms: a column of ones, then one per level beside each parameter's reference."""

    terms: Sequence[tuple[str, str]]
    design: Matrix
    basis: Matrix
    references: Mapping[str, str]

    @property
    def degrees(self) -> int:
        """Trials beyond what the terms use up."""
        return int(self.design.shape[0] - self.basis.shape[1])

    @classmethod
    def of(cls, factors: Mapping[str, Sequence[str]], num_rows: int) -> _Model:
        import numpy as np

        references = {name: Counter(levels).most_common(1)[0][0] for name, levels in factors.items()}
        terms = [(n, v) for n, levels in factors.items() for v in _in_order(set(levels)) if v != references[n]]
        columns = [np.ones(num_rows), *(_marks(factors[name], level) for name, level in terms)]
        design = np.column_stack(columns)
        return cls(terms, design, spanning(design), references)


@dataclass(frozen=True)
class _Fit:
    """The terms' values, how far each is uncertain, and what they leave open."""

    terms: Mapping[tuple[str, str], tuple[float, float]]
    rest: Matrix
    variance: float
    degrees: int

    @classmethod
    def of(cls, model: _Model, logs: Matrix) -> _Fit:
        """Least squares. A term that the trials cannot tell from the others has no value."""
        found = solve(model.design, logs)
        variance = float(found.rest @ found.rest) / model.degrees
        terms = {
            term: (float(found.coefficients[at]), math.sqrt(variance * found.unscaled[at, at]))
            for at, term in enumerate(model.terms, start=1)
            if found.known[at]
        }
        return cls(terms, found.rest, variance, model.degrees)

    def effect(self, counted: Effect) -> Effect:
        """The same level with what it does."""
        term = self.terms.get((counted.parameter, counted.level))
        if term is None:
            return counted
        value, error = term
        reach = t_quantile(CONFIDENCE, self.degrees) * error
        pct, low, high = (100 * (exp(each) - 1) for each in (value, value - reach, value + reach))
        return replace(counted, pct=pct, low=low, high=high)


def _interactions(factors: Mapping[str, Sequence[str]], model: _Model, fit: _Fit) -> tuple[Interaction, ...]:
    """The pairs that work together, surest first."""
    tested = [
        (pair, p) for pair in combinations(factors, 2) if (p := _joint_p(factors, pair, model, fit)) is not None
    ]
    tested.sort(key=lambda found: found[1])
    corrected, worst = [], 0.0
    for rank, (pair, p) in enumerate(tested):
        worst = max(worst, min(1.0, p * (len(tested) - rank)))
        corrected.append((pair, worst))
    return tuple(_described(factors, pair, p, fit) for pair, p in corrected if p < SIGNIFICANT)


def _joint_p(
    factors: Mapping[str, Sequence[str]], pair: tuple[str, str], model: _Model, fit: _Fit
) -> float | None:
    """How often chance would lower what remains as much as terms for this pair do; None where they add none."""
    import numpy as np
    from scipy import stats

    ours, theirs = (factors[name] for name in pair)
    cells = [(a, b) for a in set(ours) for b in set(theirs)]
    columns = np.column_stack([_marks(ours, a) * _marks(theirs, b) for a, b in cells])
    added = spanning(columns - model.basis @ (model.basis.T @ columns))
    extra, left = added.shape[1], fit.degrees - added.shape[1]
    if extra < 1 or left < MIN_DEGREES:
        return None
    gained = float(np.sum((added.T @ fit.rest) ** 2))
    remains = float(fit.rest @ fit.rest) - gained
    if remains <= 1e-12:
        return None
    return float(stats.f.sf((gained / extra) / (remains / left), extra, left))


def _described(factors: Mapping[str, Sequence[str]], pair: tuple[str, str], p: float, fit: _Fit) -> Interaction:
    """The combination whose trials lie farthest from the sum of both effects, weighted by their number."""
    groups: dict[tuple[str, str], list[float]] = {}
    for a, b, rest in zip(factors[pair[0]], factors[pair[1]], fit.rest, strict=True):
        groups.setdefault((a, b), []).append(float(rest))
    levels, rests = max(groups.items(), key=lambda item: (abs(sum(item[1])) / math.sqrt(len(item[1])), item[0]))
    return Interaction(pair, p, levels, 100 * (exp(sum(rests) / len(rests)) - 1), len(rests))


def _marks(levels: Sequence[str], level: str) -> Matrix:
    import numpy as np

    return np.asarray([1.0 if each == level else 0.0 for each in levels])


def _factors(settings: Sequence[Mapping[str, Setting]]) -> dict[str, list[str]]:
    """The parameters that differ, each with its level per setting; those that differ most often first."""
    names = dict.fromkeys(name for setting in settings for name in setting)
    found = {name: _levels([setting.get(name) for setting in settings]) for name in names}
    varied = {name: levels for name, levels in found.items() if len(set(levels)) > 1}
    common = {name: Counter(levels).most_common(1)[0][1] for name, levels in varied.items()}
    return dict(sorted(varied.items(), key=lambda item: (common[item[0]], item[0]))[:MAX_PARAMETERS])


def _levels(values: Sequence[Setting | None]) -> list[str]:
    """A text per value. Many numbers are cut into ranges, of many words the rarest are put together."""
    texts = [_text(value) for value in values]
    if len(set(texts)) <= MAX_LEVELS:
        return texts
    numbers = sorted({float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)})
    if len(numbers) < len(set(texts)) - 1:
        kept = {text for text, _ in Counter(texts).most_common(MAX_LEVELS - 1)}
        return [text if text in kept else _OTHERS for text in texts]
    size = math.ceil(len(numbers) / 4)
    ranges = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    named = {number: f"{part[0]:g} to {part[-1]:g}" for part in ranges for number in part}
    return [
        named[float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else text
        for value, text in zip(values, texts, strict=True)
    ]


def _text(value: Setting | None) -> str:
    if value is None:
        return NOT_SET
    return (
        str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
    )


def _in_order(levels: set[str]) -> list[str]:
    """Numbers by their size, then words."""

    def key(level: str) -> tuple[bool, float, str]:
        head = level.partition(" ")[0]
        try:
            return False, float(head), level
        except ValueError:
            return True, 0.0, level

    return sorted(levels, key=key)
