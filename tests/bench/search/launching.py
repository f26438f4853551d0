"""One trial of an Optuna study on a simulated server: what is suggested, what is measured, what is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.study import Study
from optuna.trial import TrialState

from tests.bench.search.simulator import Outcome, Surface
from tests.bench.search.simulator.configurations import (
    ALGORITHM,
    DRAFT_TOKENS,
    DRAFTER,
    EAGLE3,
    FLAGS,
    MAX_STEPS,
    MAX_TOKENS,
    NONE,
    NUM_STEPS,
    TOPK,
    TOPKS,
    Config,
    Value,
    baseline,
    key,
    speculative,
)

CONSTRAINT = "starts"
"""Optuna's name of the constraint that a failed start violates."""
WORSE = 0.8
"""A failed start, told as a value, counts as this share of the worst throughput so far."""


Choose = Callable[[str, BaseDistribution], Any]


def walk(choose: Choose, drafters: tuple[str, ...], flat: bool = False) -> dict[str, Any]:
    """The search space as a person would write it down; conditional parameters only where they matter.

    flat: all of them, always, for samplers that cannot handle conditions.
    """
    chosen: dict[str, Any] = {}

    def pick(name: str, distribution: BaseDistribution) -> None:
        chosen[name] = choose(name, distribution)

    pick(ALGORITHM, CategoricalDistribution((NONE, EAGLE3)))
    if flat or chosen[ALGORITHM] == EAGLE3:
        pick(DRAFTER, CategoricalDistribution(drafters))
        pick(NUM_STEPS, IntDistribution(1, MAX_STEPS))
        pick(TOPK, CategoricalDistribution(TOPKS))
        if flat or chosen[TOPK] != 1:
            pick(DRAFT_TOKENS, IntDistribution(2, MAX_TOKENS, log=True))
    for name, values in FLAGS.items():
        pick(name, CategoricalDistribution(values))
    return chosen


def suggest(trial: optuna.Trial, drafters: tuple[str, ...], flat: bool = False) -> dict[str, Any]:
    """The parameters of a trial."""

    def choose(name: str, distribution: BaseDistribution) -> Any:
        if isinstance(distribution, IntDistribution):
            return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
        assert isinstance(distribution, CategoricalDistribution)
        return trial.suggest_categorical(name, distribution.choices)

    return walk(choose, drafters, flat)


def fitted(params: Mapping[str, Any]) -> dict[str, Value]:
    """The server that these parameters start. More draft tokens than fit are cut, as few samplers know a limit."""
    flags = {name: params[name] for name in FLAGS}
    if params[ALGORITHM] == NONE:
        return baseline(**flags)
    num_steps, topk = params[NUM_STEPS], params[TOPK]
    return speculative(params[DRAFTER], num_steps, topk, params.get(DRAFT_TOKENS, num_steps + 1), **flags)


def as_params(config: Config, flat: bool = False, drafter: str = "") -> dict[str, Value]:
    """The inverse of `fitted`, to enqueue. flat: all parameters; those of a baseline then have some value."""
    params = dict(config)
    if flat:
        return {**{DRAFTER: drafter, NUM_STEPS: 3, TOPK: 1, DRAFT_TOKENS: 4}, **params}
    if params.get(TOPK) == 1:
        del params[DRAFT_TOKENS]
    return params


class Launches:
    """The restarts of one study. Several of the same configuration differ, as launches do.

    as_value: failed starts are told as a low value, for samplers that know no constraints. Otherwise they are
    pruned with a violated constraint, as specsweep does.
    """

    def __init__(self, server: Surface, repeat: int, *, flat: bool = False, as_value: bool = False) -> None:
        self._server, self._repeat, self._flat, self._as_value = server, repeat, flat, as_value
        self._seen: Counter[str] = Counter()
        self._throughputs: dict[str, list[float]] = {}
        self._configs: dict[str, Config] = {}
        self.num_failures = 0

    def next(self, study: Study) -> Outcome:
        """Ask, restart, measure, tell."""
        trial = study.ask()
        config = fitted(suggest(trial, self._server.drafters, self._flat))
        name = key(config)
        outcome = self._server.evaluate(config, repeat=1000 * self._repeat + self._seen[name])
        self._seen[name] += 1
        throughput = outcome.throughput
        if not self._as_value:
            trial.set_constraint(CONSTRAINT, 1.0 if throughput is None else 0.0)
        if throughput is None:
            self.num_failures += 1
            self._tell_failure(study, trial)
            return outcome
        self._throughputs.setdefault(name, []).append(throughput)
        self._configs[name] = config
        if outcome.accept_length is not None:
            trial.set_user_attr("accept_length", outcome.accept_length)
            trial.set_user_attr("accept_histogram", list(outcome.accept_histogram))
        study.tell(trial, throughput)
        return outcome

    def named(self) -> Config | None:
        """The configuration that measured best on average: what would be named if the night ended now."""
        if not self._throughputs:
            return None
        means = {name: sum(found) / len(found) for name, found in self._throughputs.items()}
        return self._configs[max(means, key=means.__getitem__)]

    def _tell_failure(self, study: Study, trial: optuna.Trial) -> None:
        if not self._as_value:
            study.tell(trial, state=TrialState.PRUNED)
            return
        worst = min((min(found) for found in self._throughputs.values()), default=1.0)
        study.tell(trial, WORSE * worst)
