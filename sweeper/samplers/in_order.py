"""A sampler that takes configurations in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial


class InOrderSampler(BaseSampler):
    """Plans the first listed configuration that agrees with the values that a trial already has.

    listed: the configurations that are left, by parameter names; asked for anew before each trial.
    seed: decides the values of a trial that agrees with none.
    """

    def __init__(self, listed: Callable[[], Iterable[Mapping[str, Any]]], seed: int) -> None:
        self._listed = listed
        self._otherwise = optuna.samplers.RandomSampler(seed=seed)
        self._plan: Mapping[str, Any] = {}

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Plan the trial."""
        given = {**trial.system_attrs.get("fixed_params", {}), **trial.params}.items()
        self._plan = next((values for values in self._listed() if given <= values.items()), {})

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Empty: the plan is served value by value."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Empty: the plan is served value by value."""
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  (Optuna's own signature)
        """The planned value, or one at random for a parameter that the plan does not have."""
        if param_name in self._plan:
            return self._plan[param_name]
        return self._otherwise.sample_independent(study, trial, param_name, param_distribution)
