"""Proposals for the trials of an Optuna study, from what its other trials say."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from sweeper.samplers.physics.all_reduce import AllReduce
from sweeper.samplers.physics.batch import Batch
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.evidence import gather
from sweeper.samplers.physics.forecast import Forecast
from sweeper.samplers.physics.knowledge import Knowledge, Teacher
from sweeper.samplers.physics.ledger import Ledger, Rulebook
from sweeper.samplers.physics.observation import Observation, Observe, Spelling
from sweeper.samplers.physics.planner import Planner, Proposal, Situation
from sweeper.samplers.physics.reading import Reader
from sweeper.samplers.physics.roles import Roles
from sweeper.samplers.physics.space import Config, SearchSpace, position

PLAN_ATTR = "specsweep:plan"
"""The trial's system attribute that holds the planned configuration."""

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)

_PER_SECOND = 1000.0

_MOST_UNPLANNED = 4
"""Trials of other workers that have begun but do not show a plan yet: of so many the plan is foreseen. They would
propose the same otherwise."""


def trial_seed(seed: int, number: int, name: str = "") -> int:
    """The seed of whatever is drawn for one trial, or for one parameter of it."""
    text = f"{seed}:{number}" if not name else f"{seed}:{number}:{name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


class Proposer:
    """Reads trials and proposes configurations of one space. What it carries from trial to trial changes nothing.

    The arguments are PhysicsSampler's.
    """

    def __init__(  # noqa: PLR0913  (PhysicsSampler's own)
        self,
        space: SearchSpace,
        roles: Roles,
        observe: Observe,
        spelling: Spelling,
        earlier: Sequence[Observation],
        all_reduce: AllReduce | None,
        objective_is_throughput: bool,
    ) -> None:
        self._observe, self._spelling = observe, spelling
        self._earlier = tuple(earlier)
        self._is_throughput = objective_is_throughput
        self._encoding = Encoding(space, roles)
        self._teacher = Teacher(self._encoding, all_reduce)
        self._planner = Planner(self._encoding)
        self._names = frozenset(parameter.name for parameter in space.parameters)
        self._rules = Rulebook(space)
        self._reader = Reader(self._seen, spelling, self._rules)

    def forecast(self, knowledge: Knowledge, config: Config) -> Forecast | None:
        """What is expected of one configuration; None where the space cannot express it."""
        if not config.keys() <= self._names or any(
            flag.name in config and position(config[flag.name], flag.values) < 0 for flag in self._encoding.flags
        ):
            return None
        return self._planner.forecast(knowledge, config, "asked for")

    def propose(self, trials: Sequence[FrozenTrial], trial: FrozenTrial, seed: int) -> Proposal | None:
        """The trial's proposal, after those that other workers are about to make for earlier trials.

        trials: all of the study. Raises SpaceExhausted.
        """
        finished = [t for t in trials if t.state in FINISHED]
        read = self._reader.readings(finished)
        told = [each.told for each in read if each.told is not None]
        others = [t for t in trials if t.state not in FINISHED and t.number != trial.number]
        taken = [self._config_of(t) for t in others]
        running = [t for t in others if t.state is TrialState.RUNNING]
        pending = [config for t in running if (config := self._config_of(t))]
        unplanned = [t for t in running if t.number < trial.number and not self._config_of(t)]
        proposal: Proposal | None = None
        for each in (*unplanned[:_MOST_UNPLANNED], trial):
            situation = Situation(
                knowledge=self.learn(finished, pending),
                ledger=Ledger(self._rules, taken, (each.key for each in read)),
                told=told,
                given=self._given(each),
                rng=np.random.default_rng(trial_seed(seed, each.number)),
                turn=each.number,
            )
            proposal = self._planner.propose(situation)
            if proposal is not None:
                pending.append(proposal.config)
                taken.append(proposal.config)
        return proposal

    def learn(self, finished: Sequence[FrozenTrial], running: Sequence[Config] = ()) -> Knowledge:
        """What finished trials say; what is being measured is taken to bring what is expected."""
        own = [each.seen for each in self._reader.readings(finished) if each.seen is not None]
        pending: Batch | None = None
        if running:
            pending, _ = self._encoding.encode(running, np.zeros(len(running), dtype=bool))
        return self._teacher.learn(gather(self._encoding, own, self._earlier), pending)

    def _seen(self, trial: FrozenTrial) -> Observation | None:
        seen = self._observe(trial)
        if seen is None or self._is_throughput or seen.throughput is None:
            return seen
        return replace(seen, throughput=_PER_SECOND / seen.throughput)

    def _config_of(self, trial: FrozenTrial) -> Config:
        """The configuration of a trial that is not finished: its plan, or what it was given."""
        plan: Config | None = trial.system_attrs.get(PLAN_ATTR)
        return plan if plan is not None else self._given(trial)

    def _given(self, trial: FrozenTrial) -> Config:
        """What a trial has already: enqueued, or chosen before a crash."""
        return self._spelling.to_config({**trial.system_attrs.get("fixed_params", {}), **trial.params})
