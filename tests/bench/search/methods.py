"""The methods that are compared: each makes an Optuna sampler for one server."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.study import Study

from sweeper.samplers.choice import Listed, SamplerSettings, make_factory
from sweeper.samplers.distinct import Choose, DistinctSampler, Values
from tests.bench.search import ours
from tests.bench.search.by_hand import FIRST_SHAPE, GridSampler, OneFactorSampler, results_of
from tests.bench.search.launching import as_params, fitted, walk
from tests.bench.search.simulator import Surface
from tests.bench.search.simulator.configurations import (
    Value,
    baseline,
    key,
    speculative,
)
from tests.bench.search.smac_rival import SmacSampler

STARTUP_TRIALS = 10
BUDGET = 40
"""Restarts of a night, unless said otherwise."""


@dataclass(frozen=True)
class Method:
    """One way to search.

    make: the sampler for a server and a seed. opening: whether the baseline and SGLang's example are launched
    first, as anybody would; a method without it begins as it likes. flat, as_value: see `Launches`.
    """

    make: Callable[[Surface, int], BaseSampler]
    opening: bool = True
    flat: bool = False
    as_value: bool = False


def study_of(method: Method, server: Surface, seed: int) -> Study:
    """A new study in memory, with the opening in its queue."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = method.make(server, seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    if method.opening:
        first = server.drafters[0]
        for config in (baseline(), speculative(first, *FIRST_SHAPE)):
            study.enqueue_trial(as_params(config, method.flat, first))
    return study


def tpe(_server: Surface, seed: int) -> BaseSampler:
    """Optuna's default."""
    return TPESampler(seed=seed, n_startup_trials=STARTUP_TRIALS)


def tpe_with_constraints(server: Surface, seed: int) -> BaseSampler:
    """What specsweep uses where nothing is known of the engine: multivariate, only what is legal and untried."""
    seen: set[str] = set()

    def fresh(values: Mapping[str, object]) -> bool:
        return key(fitted(values)) not in seen

    def propose(choose: Choose) -> Values:
        return walk(choose, server.drafters)

    def untried() -> list[Values]:
        rng = random.Random(f"{seed}:{len(seen)}")
        drawn = [propose(lambda _name, distribution: _draw(rng, distribution)) for _ in range(20)]
        return [values for values in drawn if fresh(values)]

    class Remembering(DistinctSampler):
        def before_trial(self, study: Study, trial: optuna.trial.FrozenTrial) -> None:
            seen.update(results_of(study))
            super().before_trial(study, trial)

    return Remembering(
        make_factory(SamplerSettings("tpe", seed, STARTUP_TRIALS), Listed()), seed, propose, fresh, untried
    )


def _draw(rng: random.Random, distribution: BaseDistribution) -> Value:
    if isinstance(distribution, CategoricalDistribution):
        return rng.choice([value for value in distribution.choices if value is not None])
    assert isinstance(distribution, IntDistribution)
    return rng.randint(distribution.low, distribution.high)


def gaussian_process(_server: Surface, seed: int) -> BaseSampler:
    """Optuna's own, told that the objective is noisy. Needs torch."""
    return GPSampler(seed=seed, n_startup_trials=STARTUP_TRIALS, deterministic_objective=False)


def smac(server: Surface, seed: int) -> BaseSampler:
    """SMAC3. Needs smac."""
    return SmacSampler(server.drafters, seed, num_trials=BUDGET)


METHODS: dict[str, Method] = {
    "random": Method(lambda _server, seed: RandomSampler(seed=seed)),
    "grid": Method(lambda server, _seed: GridSampler(server.drafters)),
    "tpe": Method(tpe, as_value=True),
    "tpe_constraints": Method(tpe_with_constraints),
    "gp": Method(gaussian_process, flat=True, as_value=True),
    "smac": Method(smac, as_value=True),
    "one_factor": Method(lambda server, _seed: OneFactorSampler(server.drafters)),
    "ours": Method(ours.plain, opening=False),
    "ours_all_reduce": Method(ours.with_all_reduce, opening=False),
    "ours_no_histogram": Method(ours.without_histogram, opening=False),
    "ours_no_accept_length": Method(ours.without_accept_length, opening=False),
    "ours_no_failures": Method(ours.without_failures, opening=False),
}


NEEDS = {"gp": "torch", "smac": "smac"}
"""What a method needs that specsweep does not bring."""


def installed(name: str) -> bool:
    """Whether a method's own library is there."""
    return name not in NEEDS or find_spec(NEEDS[name]) is not None
