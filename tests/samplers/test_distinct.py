"""What is proposed where the wrapped sampler proposes the same again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from sweeper.samplers.distinct import Choose, DistinctSampler, SpaceExhausted, Values

pytestmark = pytest.mark.study

SPACE: Mapping[str, BaseDistribution] = {"steps": IntDistribution(1, 8), "memory": FloatDistribution(0.5, 0.9)}


class Sure(RandomSampler):
    """Proposes the lowest value of everything, whatever was tried."""

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        del study, trial, param_name
        return getattr(param_distribution, "low")  # noqa: B009  (of a kind that has it)


def walk(choose: Choose) -> Values:
    return {name: choose(name, distribution) for name, distribution in SPACE.items()}


def night(sampler: BaseSampler, num_trials: int) -> list[Values]:
    study = optuna.create_study(sampler=sampler, direction="maximize")
    for number in range(num_trials):
        trial = study.ask()
        trial.suggest_int("steps", 1, 8)
        trial.suggest_float("memory", 0.5, 0.9)
        study.tell(trial, float(number))
    return [trial.params for trial in study.trials]


def test_a_sampler_that_is_sure_of_itself_exhausts_no_space_that_cannot_be_listed() -> None:
    tried: list[Values] = []

    def fresh(values: Mapping[str, Any]) -> bool:
        new = values not in tried
        tried.append(dict(values))
        return new

    seen = night(DistinctSampler(lambda seed: Sure(seed), 0, walk, fresh), 12)
    assert seen[0] == {"steps": 1, "memory": 0.5}
    assert len({tuple(values.items()) for values in seen}) == 12
    assert len({values["steps"] for values in seen}) > 3


def test_few_legal_ones_are_found_among_many() -> None:
    def legal(values: Mapping[str, Any]) -> bool:
        return bool(values["steps"] == 7 and values["memory"] > 0.8)  # 3 % of the space

    (found,) = night(DistinctSampler(lambda seed: Sure(seed), 0, walk, legal), 1)
    assert legal(found)


def test_where_nothing_is_fresh_the_space_is_exhausted() -> None:
    with pytest.raises(SpaceExhausted, match="in 204 proposals"):
        night(DistinctSampler(lambda seed: Sure(seed), 0, walk, lambda values: False), 1)


def test_a_fallback_is_the_same_after_a_restart() -> None:
    def legal(values: Mapping[str, Any]) -> bool:
        return bool(values["memory"] > 0.6)

    one, other = (night(DistinctSampler(lambda seed: Sure(seed), 5, walk, legal), 3) for _ in range(2))
    assert one == other
