"""Of very many trials TPE reads the best and the newest; of fewer all, and proposes what it always has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optuna
import pytest
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from sweeper.samplers.narrowed import BEST, NarrowedSampler, chosen
from sweeper.samplers.snapshot import snapshot

SPACE = {
    "steps": optuna.distributions.IntDistribution(1, 30),
    "backend": optuna.distributions.CategoricalDistribution(["a", "b", "c"]),
}


def finished(count: int) -> list[FrozenTrial]:
    rng, trials = RandomSampler(seed=1), []
    study = optuna.create_study()
    for n in range(count):
        blank = create_trial(state=TrialState.RUNNING)
        params = {name: rng.sample_independent(study, blank, name, known) for name, known in SPACE.items()}
        value = abs(params["steps"] - 20) + 0.01 * n
        trials.append(create_trial(params=params, distributions=SPACE, value=None if n % 9 == 8 else value,
                                   state=TrialState.PRUNED if n % 9 == 8 else TrialState.COMPLETE))  # fmt: skip
    return numbered(trials)


def numbered(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    for n, trial in enumerate(trials):
        trial.number = trial._trial_id = n
    return list(trials)


def proposed(sampler: BaseSampler, trials: Sequence[FrozenTrial], current: FrozenTrial) -> dict[str, Any]:
    study = snapshot([StudyDirection.MINIMIZE], [*trials, current])
    sampler.before_trial(study, current)
    space = sampler.infer_relative_search_space(study, current)
    found = sampler.sample_relative(study, current, space)
    rest = {
        n: sampler.sample_independent(study, current, n, known) for n, known in SPACE.items() if n not in found
    }
    return {**found, **rest, "noted": study._storage.get_trial(current._trial_id).system_attrs}


def begun(number: int) -> FrozenTrial:
    trial = create_trial(state=TrialState.RUNNING)
    trial.number = trial._trial_id = number
    return trial


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("seed", range(3))
def test_up_to_the_limit_it_proposes_what_tpe_does(seed: int) -> None:
    trials = finished(60)
    plain, narrowed = (TPESampler(seed=seed, multivariate=True, group=True) for _ in range(2))
    assert proposed(NarrowedSampler(narrowed, most=60), trials, begun(60)) == proposed(plain, trials, begun(60))


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_beyond_it_proposes_what_tpe_does_of_the_best_and_the_newest_alone() -> None:
    trials = finished(200)
    seen = chosen(trials, StudyDirection.MINIMIZE, 80)
    plain, narrowed = (TPESampler(seed=3, multivariate=True, group=True) for _ in range(2))
    found = proposed(NarrowedSampler(narrowed, most=80), trials, begun(200))
    assert len(seen) == 80
    assert found == proposed(plain, seen, begun(200))
    assert found["noted"], "what TPE notes for other workers is noted with the trial itself"


def test_the_best_are_seen_however_old_and_all_in_their_order() -> None:
    trials = finished(500)
    seen = chosen(trials, StudyDirection.MINIMIZE, 100)
    best = sorted((t for t in trials if t.value is not None), key=lambda t: (t.value, t.number))[:BEST]
    numbers = [trial.number for trial in seen]
    assert numbers == sorted(set(numbers))
    assert {trial.number for trial in best} <= set(numbers)
    assert numbers[-(100 - BEST) :] == list(range(400 + BEST, 500))


class Reading(RandomSampler):
    """Remembers how many trials it could read."""

    def __init__(self) -> None:
        super().__init__(seed=0)
        self.read: list[int] = []

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Any) -> dict[str, Any]:
        self.read.append(len(study.get_trials(deepcopy=False)))
        return {}


def test_what_is_read_does_not_grow_with_the_study_but_with_what_is_under_way() -> None:
    inner = Reading()
    for count in (100, 400):
        trials = finished(count)
        proposed(NarrowedSampler(inner, most=50), [*trials, begun(count)], begun(count + 1))
    assert inner.read == [52, 52]
