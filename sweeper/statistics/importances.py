"""How much each parameter matters for being among the best: Optuna's PED-ANOVA. Pure.

PED-ANOVA (Watanabe et al. 2023) compares where the best tenth of the trials lies with where all of them lie.
It says which parameter to look at, not in which direction.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

MIN_TRIALS = 10
"""With fewer there is no best tenth of them."""

FEW_TRIALS = 100
"""Below this the shares mean little: the best tenth is fewer than ten trials."""

MAX_CHOICES = 12
"""A number with no more values than these is taken for a choice: between 4, 8 and 16 nothing was tried."""

Setting = bool | int | float | str


def importances(settings: Sequence[Mapping[str, Setting]], values: Sequence[float]) -> dict[str, float]:
    """Parameter to its share of the whole (they add up to 1), the largest first.

    Parameters that never differ are left out; so is everything where there are too few trials, or where all
    values are equal. `values`: the greater, the better; one per setting. A parameter may be absent from a setting.
    """
    names = dict.fromkeys(name for setting in settings for name in setting)
    spaces = {name: _distribution([s[name] for s in settings if name in s]) for name in names}
    varied = {name: space for name, space in spaces.items() if space is not None}
    if not varied or len(settings) < MIN_TRIALS or min(values) == max(values):
        return {}
    study = _study(settings, values, varied)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few trials say little is said by who shows the shares
        found = optuna.importance.get_param_importances(study, params=list(varied))
    return {name: share for name, share in found.items() if share > 0}


def _study(
    settings: Sequence[Mapping[str, Setting]], values: Sequence[float], spaces: Mapping[str, BaseDistribution]
) -> optuna.Study:
    """The trials as a study in memory."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={name: value for name, value in setting.items() if name in spaces},
                distributions={name: spaces[name] for name in setting if name in spaces},
                value=value,
            )
            for setting, value in zip(settings, values, strict=True)
        ]
    )
    return study


def _distribution(values: Sequence[Setting]) -> BaseDistribution | None:
    """The smallest space that has all the values; None where there is only one of them."""
    distinct = list(dict.fromkeys((type(value), value) for value in values))
    if len(distinct) < 2:
        return None
    plain = [value for _, value in distinct]
    numbers = [value for value in plain if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(plain) or len(plain) <= MAX_CHOICES:
        return CategoricalDistribution(plain)
    if all(isinstance(value, int) for value in numbers):
        return IntDistribution(int(min(numbers)), int(max(numbers)))
    return FloatDistribution(min(numbers), max(numbers))
