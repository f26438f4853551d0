"""An Optuna sampler that knows what speculative decoding is.

    space = SearchSpace((SearchParameter("drafter", ("none", "a", "b")),
                         SearchParameter("num_steps", (1, 2, 3), ordered=True), …))
    roles = Roles(drafter=("drafter",), num_steps="num_steps", speculates=lambda c: c["drafter"] != "none")
    study = optuna.create_study(direction="maximize", sampler=PhysicsSampler(space, roles, seed=0))

The objective suggests its parameters as always and returns tokens per second; it tells the sampler more with
`trial.set_user_attr("accept_length", …)` and `"accept_histogram"`. Any Optuna study will do; nothing else of
specsweep is needed.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from sweeper.samplers.physics.all_reduce import AllReduce
from sweeper.samplers.physics.forecast import FORECAST_ATTR, Forecast, to_json
from sweeper.samplers.physics.knowledge import Knowledge
from sweeper.samplers.physics.observation import Observation, Observe, Spelling, UserAttributes
from sweeper.samplers.physics.proposing import FINISHED, PLAN_ATTR, Proposer, trial_seed
from sweeper.samplers.physics.roles import Roles
from sweeper.samplers.physics.space import Config, SearchSpace, Value

_log = logging.getLogger(__name__)


class PhysicsSampler(BaseSampler):
    """Plans a whole legal, untried configuration per trial, and then serves its values.

    Proposals depend on (seed, trial number, finished trials, pending trials) and on nothing else: a resumed
    study goes on as an uninterrupted one would. Values that a trial already has (enqueued ones) are kept.
    Parameters that the space does not name go to Optuna's TPE; without a space all of them do, in any study. A
    warning in the log says so once.

    space, roles: what is searched, and which parameter means what.
    observe: what a finished trial says; read from its value and user attributes unless given.
    spelling: how configurations are written in the study.
    earlier: observations of other studies on the same host.
    all_reduce: timings of all-reduces; an expectation only.
    objective_is_throughput: the value is tokens per second, to be maximised. Otherwise it is milliseconds per
        token, to be minimised; forecasts then show its reciprocal, tokens per second.

    Raises TypeError for a space that is no SearchSpace or has no roles. With a space `before_trial` raises
    ValueError for a study with several objectives or the wrong direction, and
    SpaceExhausted when every legal configuration was tried.
    """

    def __init__(  # noqa: PLR0913  (all have defaults)
        self,
        space: SearchSpace | None = None,
        roles: Roles | None = None,
        seed: int = 0,
        *,
        observe: Observe | None = None,
        spelling: Spelling | None = None,
        earlier: Sequence[Observation] = (),
        all_reduce: AllReduce | None = None,
        objective_is_throughput: bool = True,
    ) -> None:
        self._seed = seed
        self._spelling = spelling or Spelling()
        self._is_throughput = objective_is_throughput
        self._proposer: Proposer | None = None
        if space is not None:
            self._proposer = Proposer(
                *_declared(space, roles),
                observe or UserAttributes(self._spelling),
                self._spelling,
                earlier,
                all_reduce,
                objective_is_throughput,
            )
        self._planning = threading.Lock()
        self._warned: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock: samplers are pickled with their studies, and copied."""
        return {name: value for name, value in self.__dict__.items() if name != "_planning"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._planning = threading.Lock()

    def with_seed(self, seed: int) -> PhysicsSampler:
        """The same with another seed; what was read of finished trials, and of the space, is not read again."""
        other = copy.copy(self)
        other._seed, other._planning = seed, self._planning
        return other

    def knowledge(self, study: Study) -> Knowledge:
        """What the finished trials of a study say: models to predict with, see `predict`.

        Raises TypeError without a space.
        """
        return self._needed().learn(study.get_trials(deepcopy=False, states=FINISHED))

    def forecast(self, knowledge: Knowledge, config: Config) -> Forecast | None:
        """What is expected of one configuration; None where the space cannot express it."""
        return self._needed().forecast(knowledge, config)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Plan the trial and keep plan and forecast with it."""
        if self._proposer is None:
            return
        self._check(study)
        with self._planning:
            proposal = self._proposer.propose(study.get_trials(deepcopy=False), trial, self._seed)
            if proposal is not None:
                storage, trial_id = study._storage, trial._trial_id
                storage.set_trial_system_attr(trial_id, PLAN_ATTR, dict(proposal.config))
                storage.set_trial_system_attr(trial_id, FORECAST_ATTR, to_json(proposal.forecast))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Empty with a space: the plan is served value by value. Otherwise TPE's."""
        if self._proposer is not None:
            return {}
        return self._tpe(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Empty with a space: the plan is served value by value. Otherwise TPE's."""
        return {} if self._proposer is not None else self._tpe(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  (Optuna's own signature)
        """The planned value; TPE's for what the plan does not hold or the distribution does not contain."""
        plan = self._spelling.to_params(trial.system_attrs.get(PLAN_ATTR, {}))
        if param_name in plan and _contains(param_distribution, plan[param_name]):
            return plan[param_name]
        if self._proposer is None:
            self._warn("no space was declared, so nothing is planned: all parameters go to Optuna's TPE")
        elif plan:
            self._warn("%s goes to Optuna's TPE: the space does not declare it with these values", param_name)
        return self._tpe(trial, param_name).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """What TPE keeps of a trial. A plan that the objective did not ask for in full is warned of, once."""
        plan = self._spelling.to_params(trial.system_attrs.get(PLAN_ATTR, {}))
        unasked = [name for name in plan if name not in trial.params]
        if unasked and state is TrialState.COMPLETE:
            self._warn(
                "trial %s never suggested %s: such trials count as untried and are proposed again",
                trial.number,
                ", ".join(unasked),
            )
        self._tpe(trial).after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Nothing to do: no random state is carried."""

    def _tpe(self, trial: FrozenTrial, name: str = "") -> TPESampler:
        """Optuna's own sampler for one trial, or for one parameter of it."""
        return TPESampler(seed=trial_seed(self._seed, trial.number, name))

    def _needed(self) -> Proposer:
        if self._proposer is None:
            raise TypeError("nothing can be predicted without a space: PhysicsSampler(space, roles)")
        return self._proposer

    def _warn(self, message: str, *values: object) -> None:
        """Each message once, whatever its values."""
        if message not in self._warned:
            self._warned.add(message)
            _log.warning(message, *values)

    def _check(self, study: Study) -> None:
        wanted = StudyDirection.MAXIMIZE if self._is_throughput else StudyDirection.MINIMIZE
        if study.directions != [wanted]:
            raise ValueError(
                f"study {study.study_name!r} has directions {[d.name for d in study.directions]}; this sampler "
                f"needs one objective, {wanted.name} (objective_is_throughput={self._is_throughput})"
            )


def _declared(space: object, roles: object) -> tuple[SearchSpace, Roles]:
    if isinstance(space, SearchSpace) and isinstance(roles, Roles):
        return space, roles
    raise TypeError(
        f"a SearchSpace and its Roles are needed, or no space (all parameters then go to TPE): space={space!r}, "
        f"roles={roles!r}"
    )


def _contains(distribution: BaseDistribution, value: Value) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    if isinstance(value, str):
        return False
    if isinstance(distribution, IntDistribution):
        inside = distribution.low <= value <= distribution.high
        return inside and (value - distribution.low) % distribution.step == 0
    return isinstance(distribution, FloatDistribution) and distribution.low <= value <= distribution.high
