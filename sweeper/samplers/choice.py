"""Optuna's samplers by their names in the configuration."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from sweeper.samplers.distinct import Values
from sweeper.samplers.flat import FlatSampler
from sweeper.samplers.in_order import InOrderSampler
from sweeper.samplers.narrowed import NarrowedSampler

Factory = Callable[[int], BaseSampler]
"""Makes a sampler from a seed."""

PHYSICS = "physics"

LISTED_ONLY = frozenset({"grid", "brute_force"})
"""These take configurations off a list, so the space must be one that can be listed."""


@dataclass(frozen=True)
class SamplerSettings:
    """Which sampler, and what makes it deterministic. startup_trials: random proposals before tpe or gp learns.

    physics: makes the sampler of that name; None where it does not know the space.
    """

    name: str
    seed: int
    startup_trials: int
    physics: Factory | None = None


@dataclass(frozen=True)
class Listed:
    """What a sampler may be told of the space. distributions: of every parameter, by name.

    untried: the legal configurations that are left, in the order of the space.
    """

    distributions: Mapping[str, BaseDistribution] = field(default_factory=dict)
    untried: Callable[[], Iterable[Values]] = tuple


def gp_is_missing() -> str:
    """Which library the Gaussian process needs and does not find; empty when it has all."""
    return "" if importlib.util.find_spec("torch") else "torch"


def make_factory(settings: SamplerSettings, listed: Listed) -> Factory:
    """The sampler of these settings, to be wrapped so that what it proposes is distinct.

    Raises KeyError for an unknown name, and for `physics` without it.
    """
    startup = settings.startup_trials

    def tpe(seed: int) -> BaseSampler:
        # `group` lets the multivariate model see conditional parameters.
        inner = _quietly(
            lambda: optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup, multivariate=True, group=True)
        )
        return NarrowedSampler(inner)

    def gp(seed: int) -> BaseSampler:
        inner = _quietly(
            lambda: optuna.samplers.GPSampler(seed=seed, n_startup_trials=startup, warn_independent_sampling=False)
        )
        return FlatSampler(inner, listed.distributions)

    factories: dict[str, Factory] = {
        "tpe": tpe,
        "gp": gp,
        "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
        "grid": lambda seed: InOrderSampler(listed.untried, seed),
        "brute_force": lambda seed: _quietly(lambda: _BruteForce(seed=seed)),
    }
    if settings.physics is not None:
        factories[PHYSICS] = settings.physics
    return factories[settings.name]


class _BruteForce(optuna.samplers.BruteForceSampler):
    """Is not shown the baseline, which was not sampled, and leaves the end to the space: no loop is stopped."""

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Copy what it may see."""
        self._sampled = optuna.create_study(sampler=optuna.samplers.RandomSampler(), directions=study.directions)
        for other in study.get_trials(deepcopy=False):
            seen = other.params or other.number == trial.number
            self._sampled.add_trial(other if seen else create_trial(state=TrialState.WAITING))

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  (Optuna's own signature)
        """One that no sampled trial has, given the values so far."""
        return super().sample_independent(self._sampled, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Any,  # noqa: ANN401  (Optuna's own signature)
    ) -> None:
        """Nothing to do."""


def _quietly(make: Callable[[], BaseSampler]) -> BaseSampler:
    """What `make` makes, without Optuna's warning that a sampler or a setting of it is experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return make()
