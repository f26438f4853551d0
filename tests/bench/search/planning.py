"""A sampler that decides on a whole configuration at the start of a trial, and then serves its values."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from tests.bench.search.simulator.configurations import Config


class PlanningSampler(BaseSampler):
    """The base of samplers that follow a plan; a trial's fixed values come before it."""

    _plan: Config

    @abstractmethod
    def plan(self, study: Study) -> Config:
        """The next configuration, from the finished trials of the study."""

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._plan = self.plan(study)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._plan[param_name]
