"""SMAC3 behind Optuna's interface: a random forest over the conditional space. Needs `pip install smac`."""

from __future__ import annotations

import math
import tempfile
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from tests.bench.search.planning import PlanningSampler
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
)

INITIAL_DESIGN = 8


class SmacSampler(PlanningSampler):
    """SMAC's own ask and tell. It keeps its history: one sampler serves one study, from its first trial on.

    Choices are SMAC's categories by their place in the list, so that True and 1 are never mistaken.
    """

    def __init__(self, drafters: tuple[str, ...], seed: int, num_trials: int) -> None:
        from smac import HyperparameterOptimizationFacade, Scenario

        self._choices: dict[str, tuple[Value, ...]] = {
            ALGORITHM: (NONE, EAGLE3),
            DRAFTER: drafters,
            TOPK: TOPKS,
            **FLAGS,
        }
        self._folder = tempfile.TemporaryDirectory()  # gone with the sampler
        self._space = self._make_space(seed)
        self._told = 0
        self._asked: dict[int, Any] = {}
        scenario = Scenario(
            self._space,
            n_trials=num_trials,
            deterministic=True,
            seed=seed,
            output_directory=self._folder.name,
        )
        design = HyperparameterOptimizationFacade.get_initial_design(
            scenario, n_configs=INITIAL_DESIGN, max_ratio=1.0
        )
        self._smac = HyperparameterOptimizationFacade(
            scenario, _no_target, overwrite=True, logging_level=False, initial_design=design
        )

    def plan(self, study: Study) -> Config:
        trials = study.get_trials(deepcopy=False)
        finished = [trial for trial in trials if trial.state.is_finished()]
        for trial in finished[self._told :]:
            self._tell(trial)
        self._told = len(finished)
        info = self._smac.ask()
        self._asked[len(finished)] = info
        return self._read(dict(info.config))

    def _tell(self, trial: FrozenTrial) -> None:
        from ConfigSpace import Configuration
        from smac.runhistory.dataclasses import TrialInfo, TrialValue

        info = self._asked.pop(trial.number, None)
        if info is None or "fixed_params" in trial.system_attrs:
            values = {name: self._written(name, value) for name, value in trial.params.items()}
            info = TrialInfo(Configuration(self._space, values=values), seed=0)
        self._smac.tell(info, TrialValue(cost=math.inf if trial.value is None else -trial.value))

    def _make_space(self, seed: int) -> Any:
        from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, InCondition, Integer

        space = ConfigurationSpace(seed=seed)
        places = {name: [str(place) for place in range(len(values))] for name, values in self._choices.items()}
        algorithm, drafter = Categorical(ALGORITHM, places[ALGORITHM]), Categorical(DRAFTER, places[DRAFTER])
        num_steps, topk = Integer(NUM_STEPS, (1, MAX_STEPS)), Categorical(TOPK, places[TOPK], ordered=True)
        tokens = Integer(DRAFT_TOKENS, (2, MAX_TOKENS), log=True)
        flags = [Categorical(name, places[name]) for name in FLAGS]
        space.add([algorithm, drafter, num_steps, topk, tokens, *flags])
        speculating = self._written(ALGORITHM, EAGLE3)
        branching = [place for place in places[TOPK] if place != self._written(TOPK, 1)]
        space.add([EqualsCondition(name, algorithm, speculating) for name in (drafter, num_steps, topk)])
        space.add([InCondition(tokens, topk, branching)])
        return space

    def _written(self, name: str, value: Any) -> str | int:
        return str(self._choices[name].index(value)) if name in self._choices else int(value)

    def _read(self, values: dict[str, Any]) -> dict[str, Value]:
        return {
            name: self._choices[name][int(value)] if name in self._choices else int(value)
            for name, value in values.items()
        }


def _no_target(_config: Any, seed: int = 0) -> float:
    """SMAC wants a function to minimise; it is asked and told instead."""
    raise NotImplementedError(f"asked for a target, seed {seed}")
