"""What a sampler that knows no conditions is shown of a space that has some."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from sweeper.samplers.flat import FlatSampler, middle

DISTRIBUTIONS: dict[str, BaseDistribution] = {
    "kind": CategoricalDistribution(("none", "draft")),
    "steps": IntDistribution(1, 9, step=2),
}


class Spy(RandomSampler):
    """Notes the trials that it is shown and what all of them have."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.shown: list[FrozenTrial] = []

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        self.shown = study.get_trials(deepcopy=False)
        return optuna.search_space.intersection_search_space(self.shown)


def test_every_measured_trial_has_every_parameter_and_the_baseline_is_no_measurement() -> None:
    study = optuna.create_study()
    study.add_trial(create_trial(value=1.0))
    for params in ({"kind": "none"}, {"kind": "draft", "steps": 9}):
        distributions = {name: DISTRIBUTIONS[name] for name in params}
        study.add_trial(create_trial(params=params, distributions=distributions, value=2.0))
    current = create_trial(state=TrialState.RUNNING)
    study.add_trial(current)
    spy = Spy()
    sampler: BaseSampler = FlatSampler(spy, DISTRIBUTIONS)
    space = sampler.infer_relative_search_space(study, study.get_trials()[3])
    assert space == DISTRIBUTIONS
    assert [trial.state.name for trial in spy.shown] == ["FAIL", "COMPLETE", "COMPLETE", "RUNNING"]
    assert [trial.params.get("steps") for trial in spy.shown] == [None, 5, 9, None]
    assert study.get_trials()[1].params == {"kind": "none"}


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (IntDistribution(0, 3), 1),
        (FloatDistribution(1, 3), 2.0),
        (FloatDistribution(0.01, 1.0, log=True), 0.1),
        (CategoricalDistribution(("a", "b")), "a"),
    ],
)
def test_the_middle_of_a_distribution(distribution: BaseDistribution, value: Any) -> None:
    assert middle(distribution) == pytest.approx(value) if isinstance(value, float) else value
