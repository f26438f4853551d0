"""Shows a space with conditions to a sampler that models only the parameters which all trials have."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState


class FlatSampler(BaseSampler):
    """The wrapped sampler sees each trial with all parameters; one that did not exist has its middle value.

    A trial without any parameter (the baseline was not sampled) is not shown as a measurement.
    """

    def __init__(self, inner: BaseSampler, distributions: Mapping[str, BaseDistribution]) -> None:
        self._inner = inner
        self._distributions = dict(distributions)
        self._flat: Study | None = None

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The wrapped sampler's, over the filled trials."""
        self._flat = self._filled(study, trial.number)
        return self._inner.infer_relative_search_space(self._flat, self._twin(trial))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The wrapped sampler's, over the filled trials."""
        return self._inner.sample_relative(self._flat or study, self._twin(trial), search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  (Optuna's own signature)
        """The wrapped sampler's."""
        return self._inner.sample_independent(study, trial, param_name, param_distribution)

    def _twin(self, trial: FrozenTrial) -> FrozenTrial:
        return self._flat.get_trials(deepcopy=False)[trial.number] if self._flat else trial

    def _filled(self, study: Study, current: int) -> Study:
        flat = optuna.create_study(sampler=optuna.samplers.RandomSampler(), directions=study.directions)
        for trial in study.get_trials(deepcopy=False):
            flat.add_trial(trial if trial.number == current else self._with_all(trial))
        return flat

    def _with_all(self, trial: FrozenTrial) -> FrozenTrial:
        if not trial.params:
            return optuna.trial.create_trial(state=TrialState.FAIL)
        missing = {name: dist for name, dist in self._distributions.items() if name not in trial.params}
        filled = copy.copy(trial)
        filled.params = {**trial.params, **{name: middle(dist) for name, dist in missing.items()}}
        filled.distributions = {**trial.distributions, **missing}
        return filled


def middle(distribution: BaseDistribution) -> Any:  # noqa: ANN401  (Optuna's own values)
    """A value in the middle of a distribution. Raises TypeError for a kind that has none."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    if isinstance(distribution, IntDistribution):
        steps = (distribution.high - distribution.low) // distribution.step
        return distribution.low + steps // 2 * distribution.step
    if isinstance(distribution, FloatDistribution):
        low, high = distribution.low, distribution.high
        return (low * high) ** 0.5 if distribution.log else (low + high) / 2
    raise TypeError(f"{distribution} has no middle")
