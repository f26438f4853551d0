"""A sampler that only proposes configurations that are legal and have not been tried.

It wraps any Optuna sampler. Usable with any study: it needs a `propose` function that walks the search space and
a `fresh` function that says whether a set of values is worth a trial.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from sweeper.samplers.snapshot import hand_over, snapshot

Values = dict[str, Any]
Choose = Callable[[str, BaseDistribution], Any]

ATTEMPTS = 4
"""How often the wrapped sampler is asked before an untried configuration is drawn at random."""

RANDOM_ATTEMPTS = 200
"""How often a configuration is drawn at random where those that are untried cannot be listed."""


class SpaceExhausted(Exception):
    """No untried, legal configuration could be found."""


class DistinctSampler(BaseSampler):
    """Plans a whole legal, untried configuration per trial, and then serves its values.

    Values that a trial already has (one that a person enqueued, or that a crash left half chosen) are kept,
    even if nothing legal and untried can be built around them: whoever asked must then deal with it.

    factory: makes the wrapped sampler from a seed; it may raise SpaceExhausted. Nothing is carried from trial to
        trial: the seed of a trial is drawn from (seed, trial number, attempt), so a resumed study goes on exactly
        as an uninterrupted one. What it writes down about its plan is written down with the trial.
    propose: walks the search space, asking the given function for each active parameter's value in turn; returns
        the values by parameter name.
    fresh: whether these values are legal and their configuration is untried.
    untried: fresh values to fall back on, when they can be enumerated; drawn from at random. Where it is empty,
        values are drawn from the distributions, each uniformly: a sampler that is sure of itself proposes the same
        again and again, and a large space is not exhausted by that.
    """

    def __init__(
        self,
        factory: Callable[[int], BaseSampler],
        seed: int,
        propose: Callable[[Choose], Values],
        fresh: Callable[[Mapping[str, Any]], bool],
        untried: Callable[[], Iterable[Values]] = tuple,
    ) -> None:
        self._factory = factory
        self._seed = seed
        self._propose = propose
        self._fresh = fresh
        self._untried = untried
        self._plan: Values = {}

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Plan the trial. Raises SpaceExhausted."""
        self._plan = self._make_plan(study, trial)

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
        """The planned value. Raises KeyError for a parameter that the plan left out."""
        return self._plan[param_name]

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Any,  # noqa: ANN401  (Optuna's own signature)
    ) -> None:
        """Let the wrapped sampler keep what it keeps in the study."""
        self._factory(self._trial_seed(trial.number, 0)).after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Nothing to do: no random state is carried."""

    def _make_plan(self, study: Study, trial: FrozenTrial) -> Values:
        fixed = trial.system_attrs.get("fixed_params", {})
        if trial.params:  # a crash left it half chosen: the same plan is made again, if that is possible
            with contextlib.suppress(SpaceExhausted):
                plan = self._plan_around(study, trial, fixed)
                if all(plan.get(name) == value for name, value in trial.params.items()):
                    return plan
        return self._plan_around(study, trial, {**fixed, **trial.params})

    def _plan_around(self, study: Study, trial: FrozenTrial, given: Values) -> Values:
        """A plan that keeps the values `given`. Raises SpaceExhausted."""
        values: Values = {}
        shown = snapshot(study.directions, study.get_trials(deepcopy=False))
        twin = shown.get_trials(deepcopy=False)[trial.number]
        for attempt in range(ATTEMPTS):
            try:
                values = self._draw(shown, twin, given, self._trial_seed(trial.number, attempt))
            except SpaceExhausted:
                break
            if self._fresh(values):
                hand_over(shown, study, trial)
                return values
        if given:
            return values
        if rest := list(self._untried()):
            return random.Random(self._trial_seed(trial.number, ATTEMPTS)).choice(rest)
        return self._drawn_at_random(shown, twin)

    def _drawn_at_random(self, shown: Study, twin: FrozenTrial) -> Values:
        inner = RandomSampler(self._trial_seed(twin.number, ATTEMPTS))
        for _ in range(RANDOM_ATTEMPTS):
            values = self._propose(lambda name, known: inner.sample_independent(shown, twin, name, known))
            if self._fresh(values):
                return values
        raise SpaceExhausted(f"no untried configuration found in {ATTEMPTS + RANDOM_ATTEMPTS} proposals")

    def _draw(self, study: Study, trial: FrozenTrial, given: Values, seed: int) -> Values:
        inner = self._factory(seed)
        inner.before_trial(study, trial)
        space = inner.infer_relative_search_space(study, trial)
        relative = {**inner.sample_relative(study, trial, space), **given}

        walked = copy.copy(study.get_trials(deepcopy=False)[trial.number])  # with what `before_trial` noted
        walked.params = {}

        def choose(name: str, distribution: BaseDistribution) -> Any:  # noqa: ANN401
            if name in relative and (name in given or distribution == space[name]):
                value = relative[name]
            else:
                value = inner.sample_independent(study, walked, name, distribution)
            walked.params = {**walked.params, name: value}
            return value

        return self._propose(choose)

    def _trial_seed(self, number: int, attempt: int) -> int:
        text = f"{self._seed}:{number}:{attempt}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
