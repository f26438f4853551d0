"""How a searched parameter looks to Optuna, and back.

Ordered values are given as an index into their sorted list: TPE then knows that 3 lies between 2 and 4 (it came
closer to the optimum with indices than with categories).
"""

from __future__ import annotations

from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from sweeper.spec import Choice, FlagValue, IntRange, Parameter

OptunaValue = str | int | float | bool


def optuna_name(parameter: Parameter) -> str:
    """The parameter's name in the study; environment variables are told apart by `env.`."""
    return f"env.{parameter.name}" if parameter.is_env else parameter.name


def distribution(parameter: Parameter) -> BaseDistribution:
    """The Optuna distribution of a parameter."""
    domain = parameter.domain
    if isinstance(domain, Choice):
        if domain.ordered:
            return IntDistribution(0, len(domain.values) - 1)
        return CategoricalDistribution(domain.values)
    if isinstance(domain, IntRange):
        return IntDistribution(domain.low, domain.high, step=domain.step)
    return FloatDistribution(domain.low, domain.high, log=domain.log)


def decode(parameter: Parameter, value: OptunaValue) -> FlagValue:
    """The flag's value for what the study holds. Raises ValueError for an index outside the choice."""
    domain = parameter.domain
    if not isinstance(domain, Choice) or not domain.ordered:
        return value
    ordered = sorted(domain.values)
    if not isinstance(value, int) or not 0 <= value < len(ordered):
        raise ValueError(f"{optuna_name(parameter)}: {value!r} is no index into {ordered}")
    return ordered[value]


def encode(parameter: Parameter, value: FlagValue) -> OptunaValue:
    """The inverse of `decode`. Raises ValueError when the parameter cannot take `value`."""
    domain = parameter.domain
    return sorted(domain.values).index(value) if isinstance(domain, Choice) and domain.ordered else value


def suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:  # noqa: ANN401  (Optuna's own)
    """The trial's value of a parameter, by Optuna's method for its kind. Raises TypeError for another kind."""
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step)
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    raise TypeError(f"{name}: no way to suggest from {distribution}")
