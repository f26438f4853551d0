"""An Optuna sampler that knows what speculative decoding is.

    space = SearchSpace((SearchParameter("drafter", ("none", "a", "b")), SearchParameter("num_steps", (1, 2,
    3), …), …)) roles = Roles(drafter=("drafter",), num_steps="num_steps", speculates=lambda c: c["drafter"] !=
    "none") study = optuna.create_study(direction="maximize", sampler=PhysicsSampler(space, roles, seed=0))

The objective suggests its parameters as always and returns tokens per second; it tells the sampler more with
`trial.set_user_attr("accept_length", …)` and `"accept_histogram"`. Any Optuna study will do; nothing else of
specsweep is needed.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from sweeper.samplers.physics.all_reduce import AllReduce
from sweeper.samplers.physics.batch import Batch
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.evidence import gather
from sweeper.samplers.physics.forecast import FORECAST_ATTR, Forecast, stored_forecast, to_json
from sweeper.samplers.physics.knowledge import Knowledge, Teacher
from sweeper.samplers.physics.ledger import Ledger, Rulebook
from sweeper.samplers.physics.observation import Observation, Observe, Spelling, UserAttributes
from sweeper.samplers.physics.planner import Planner, Proposal, Situation
from sweeper.samplers.physics.roles import Roles
from sweeper.samplers.physics.space import Config, SearchSpace, Value

PLAN_ATTR = "specsweep:plan"
"""The trial's system attribute that holds the planned configuration."""

_PER_SECOND = 1000.0

_MOST_UNPLANNED = 4
"""Trials of other workers that have begun but do not show a plan yet: of so many the plan is foreseen. They would
propose the same otherwise."""


class PhysicsSampler(BaseSampler):
    """Plans a whole legal, untried configuration per trial, and then serves its values.

    Proposals depend on (seed, trial number, finished trials, pending trials) and on nothing else: a resumed
    study goes on as an uninterrupted one would. Values that a trial already has (enqueued ones) are kept.
    Parameters that the space does not name go to TPE.

    space, roles: what is searched, and which parameter means what.
    observe: what a finished trial says; read from its value and user attributes unless given.
    spelling: how configurations are written in the study.
    earlier: observations of other studies on the same host.
    all_reduce: timings of all-reduces; an expectation only.
    objective_is_throughput: the value is tokens per second, to be maximised. Otherwise it is milliseconds per
        token, to be minimised; forecasts then show its reciprocal, tokens per second.

    Raises TypeError without a space: it proposes whole configurations, so it must know them before the first
    trial, unlike Optuna's own samplers. `before_trial` raises ValueError for a study with several objectives or
    the wrong direction, and SpaceExhausted when every legal configuration was tried.
    """

    def __init__(  # noqa: PLR0913  (all but the first three have defaults that fit most studies)
        self,
        space: SearchSpace,
        roles: Roles,
        seed: int,
        *,
        observe: Observe | None = None,
        spelling: Spelling | None = None,
        earlier: Sequence[Observation] = (),
        all_reduce: AllReduce | None = None,
        objective_is_throughput: bool = True,
    ) -> None:
        if not isinstance(space, SearchSpace):
            raise TypeError(
                f"space: {space!r} is no SearchSpace; whole configurations are planned, so all parameters must "
                "be declared with their values: SearchSpace((SearchParameter('num_steps', (1, 2, 3)), …))"
            )
        self._seed = seed
        self._spelling = spelling or Spelling()
        self._observe = observe or UserAttributes(self._spelling)
        self._earlier = tuple(earlier)
        self._is_throughput = objective_is_throughput
        self._encoding = Encoding(space, roles)
        self._teacher = Teacher(self._encoding, all_reduce)
        self._planner = Planner(self._encoding)
        self._rules = Rulebook(space)
        self._planning = threading.Lock()

    def knowledge(self, study: Study) -> Knowledge:
        """What the finished trials of a study say: models to predict with, see `predict`."""
        return self._learn(study.get_trials(deepcopy=False, states=_FINISHED), [])

    def forecast(self, knowledge: Knowledge, config: Config) -> Forecast | None:
        """What is expected of one configuration; None where the space cannot express it."""
        return self._planner.forecast(knowledge, config, "asked for")

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Plan the trial and keep plan and forecast with it."""
        self._check(study)
        with self._planning:
            proposal = self._propose(study.get_trials(deepcopy=False), trial)
            if proposal is not None:
                storage, trial_id = study._storage, trial._trial_id
                storage.set_trial_system_attr(trial_id, PLAN_ATTR, dict(proposal.config))
                storage.set_trial_system_attr(trial_id, FORECAST_ATTR, to_json(proposal.forecast))

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
        """The planned value; TPE's for what the plan does not hold or the distribution does not contain."""
        plan = self._spelling.to_params(trial.system_attrs.get(PLAN_ATTR, {}))
        if param_name in plan and _contains(param_distribution, plan[param_name]):
            return plan[param_name]
        tpe = TPESampler(seed=self._trial_seed(trial.number))
        return tpe.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Nothing to do: no random state is carried."""

    def _propose(self, trials: Sequence[FrozenTrial], trial: FrozenTrial) -> Proposal | None:
        """The trial's proposal, after those that other workers are about to make for earlier trials."""
        finished = [t for t in trials if t.state in _FINISHED]
        others = [t for t in trials if t.state not in _FINISHED and t.number != trial.number]
        taken = [self._config_of(t) for t in others] + [self._spelling.to_config(t.params) for t in finished]
        running = [t for t in others if t.state is TrialState.RUNNING]
        pending = [config for t in running if (config := self._config_of(t))]
        unplanned = [t for t in running if t.number < trial.number and not self._config_of(t)]
        proposal: Proposal | None = None
        for each in (*unplanned[:_MOST_UNPLANNED], trial):
            situation = Situation(
                knowledge=self._learn(finished, pending),
                ledger=Ledger(self._encoding.space, self._rules, taken),
                told=self._told(finished),
                given=self._given(each),
                rng=np.random.default_rng(self._trial_seed(each.number)),
                turn=each.number,
            )
            proposal = self._planner.propose(situation)
            if proposal is not None:
                pending.append(proposal.config)
                taken.append(proposal.config)
        return proposal

    def _learn(self, finished: Sequence[FrozenTrial], running: Sequence[Config]) -> Knowledge:
        own = [seen for t in finished if (seen := self._seen(t)) is not None]
        pending: Batch | None = None
        if running:
            pending, _ = self._encoding.encode(running, np.zeros(len(running), dtype=bool))
        return self._teacher.learn(gather(self._encoding, own, self._earlier), pending)

    def _seen(self, trial: FrozenTrial) -> Observation | None:
        seen = self._observe(trial)
        if seen is None or self._is_throughput or seen.throughput is None:
            return seen
        return replace(seen, throughput=_PER_SECOND / seen.throughput)

    def _told(self, finished: Sequence[FrozenTrial]) -> list[tuple[Forecast, float]]:
        told: list[tuple[Forecast, float]] = []
        for trial in finished:
            forecast, seen = stored_forecast(trial), self._seen(trial)
            if forecast is not None and seen is not None and seen.throughput is not None:
                told.append((forecast, math.log(seen.throughput)))
        return told

    def _config_of(self, trial: FrozenTrial) -> Config:
        """The configuration of a trial that is not finished: its plan, or what it was given."""
        plan: Config | None = trial.system_attrs.get(PLAN_ATTR)
        return plan if plan is not None else self._given(trial)

    def _given(self, trial: FrozenTrial) -> Config:
        """What a trial has already: enqueued, or chosen before a crash."""
        return self._spelling.to_config({**trial.system_attrs.get("fixed_params", {}), **trial.params})

    def _check(self, study: Study) -> None:
        wanted = StudyDirection.MAXIMIZE if self._is_throughput else StudyDirection.MINIMIZE
        if study.directions != [wanted]:
            raise ValueError(
                f"study {study.study_name!r} has directions {[d.name for d in study.directions]}; this sampler "
                f"needs one objective, {wanted.name} (objective_is_throughput={self._is_throughput})"
            )

    def _trial_seed(self, number: int) -> int:
        digest = hashlib.sha256(f"{self._seed}:{number}".encode()).digest()
        return int.from_bytes(digest[:4], "big")


_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


def _contains(distribution: BaseDistribution, value: Value) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    if isinstance(value, str):
        return False
    if isinstance(distribution, IntDistribution):
        inside = distribution.low <= value <= distribution.high
        return inside and (value - distribution.low) % distribution.step == 0
    return isinstance(distribution, FloatDistribution) and distribution.low <= value <= distribution.high
