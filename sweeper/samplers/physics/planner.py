"""Which configuration to try next, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sweeper.samplers.distinct import SpaceExhausted
from sweeper.samplers.physics.batch import Batch, FloatArray, IntArray
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.forecast import Estimate, Forecast, estimates
from sweeper.samplers.physics.knowledge import Knowledge
from sweeper.samplers.physics.ledger import Ledger
from sweeper.samplers.physics.model import Model
from sweeper.samplers.physics.opening import openings
from sweeper.samplers.physics.pool import Candidates, Given, Pool, agreeing
from sweeper.samplers.physics.space import Config
from sweeper.samplers.physics.trust import PHYSICS, PLAIN, Trust, judge
from sweeper.samplers.physics.vote import vote

_RANDOM_ATTEMPTS = 20


@dataclass(frozen=True)
class Proposal:
    """A configuration with what is expected of it."""

    config: Config
    forecast: Forecast


@dataclass(frozen=True)
class Situation:
    """What a proposal depends on, and nothing else does.

    told: forecasts of measured trials with their log throughput, in order. given: values not ours to choose.
    """

    knowledge: Knowledge
    ledger: Ledger
    told: Sequence[tuple[Forecast, float]]
    given: Config
    rng: np.random.Generator
    turn: int


class Planner:
    """Proposes configurations of one space."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._pool = Pool(encoding)

    def propose(self, situation: Situation) -> Proposal | None:
        """The next configuration; None where what is given cannot be made one. Raises SpaceExhausted.

        A given configuration is kept even if it is illegal or taken.
        """
        given = agreeing(self._encoding, situation.given)
        if not len(given.heads):
            forecast = self.forecast(situation.knowledge, situation.given, "asked for")
            return forecast and Proposal(situation.given, forecast)
        proposal = self._opening(situation, given)
        if proposal is None:
            proposal = self._choose(situation, given)
        if proposal is None:
            proposal = self._draw(situation, given)
        return proposal

    def forecast(self, knowledge: Knowledge, config: Config, reason: str) -> Forecast | None:
        """What is expected of one configuration; None where the space cannot express it."""
        batch, _ = self._encoding.encode([config], np.zeros(1, dtype=bool))
        if not len(batch):
            return None
        model = knowledge.physics or knowledge.plain
        forecast = self._describe(knowledge, model, batch, reason)
        if model is None:
            return forecast
        gain, _ = knowledge.gain(model, batch, knowledge.best(model)[1])
        return replace(forecast, expected_gain=float(gain[0]))

    def _opening(self, situation: Situation, given: Given) -> Proposal | None:
        """The baseline and a probe first: without them no model has anything to go by."""
        knowledge = situation.knowledge
        for head, reason in openings(self._encoding, knowledge.evidence):
            if head not in given.heads:
                continue
            one = replace(given, heads=np.array([head]))
            flags = self._encoding.default_flags.copy()
            for column, code in one.flags:
                flags[column] = code
            batch = self._encoding.combine(one.heads, flags[None])
            config = self._encoding.config(head, batch.flags[0])
            if situation.ledger.is_free(config):
                model = knowledge.physics or knowledge.plain
                return Proposal(config, self._describe(knowledge, model, batch, reason))
        return None

    def _choose(self, situation: Situation, given: Given) -> Proposal | None:
        knowledge = situation.knowledge
        trust = judge(situation.told)
        model = _believed(knowledge, trust)
        if model is None:
            return self._guess(situation, given)
        row, best = knowledge.best(model)
        starts = self._starts(knowledge, model, row)
        candidates = self._pool.list(
            lambda batch: knowledge.gain(model, batch, best), starts, given, situation.rng
        )
        gain, _ = knowledge.gain(model, candidates.batch, best)
        if trust.astray and situation.turn % 2:
            votes = vote(candidates.batch, knowledge.evidence) + np.log(knowledge.chance(candidates.batch))
            chosen = self._first_free(candidates, votes, situation)
            reason = "no model has predicted the latest trials: what the best trials have in common"
        else:
            chosen = self._first_free(candidates, gain, situation)
            reason = _why(trust, knowledge)
        if chosen is None:
            return None
        index, config = chosen
        forecast = self._describe(knowledge, model, candidates.batch.take([index]), reason)
        return Proposal(config, replace(forecast, expected_gain=float(gain[index])))

    def _guess(self, situation: Situation, given: Given) -> Proposal | None:
        """With nothing measured: what is likeliest to start."""
        knowledge = situation.knowledge

        def score(batch: Batch) -> tuple[FloatArray, FloatArray]:
            chance = knowledge.chance(batch)
            return chance, chance

        candidates = self._pool.list(score, [], given, situation.rng)
        chosen = self._first_free(candidates, knowledge.chance(candidates.batch), situation)
        if chosen is None:
            return None
        batch = candidates.batch.take([chosen[0]])
        reason = "nothing was measured yet: the likeliest to start"
        return Proposal(chosen[1], self._describe(knowledge, None, batch, reason))

    def _draw(self, situation: Situation, given: Given) -> Proposal:
        """Some free configuration, when the pool has none."""
        for _ in range(_RANDOM_ATTEMPTS):
            candidates = self._pool.draw(given, situation.rng)
            chosen = self._first_free(candidates, np.zeros(len(candidates.heads)), situation)
            if chosen is not None:
                batch = candidates.batch.take([chosen[0]])
                knowledge = situation.knowledge
                model = knowledge.physics or knowledge.plain
                return Proposal(chosen[1], self._describe(knowledge, model, batch, "one of the few left"))
        raise SpaceExhausted("no legal configuration is left that was not tried")

    def _starts(self, knowledge: Knowledge, model: Model, row: int) -> list[tuple[int, IntArray]]:
        """The best known configuration, where new ones are looked for first."""
        batch = knowledge.evidence.batch.take([row])
        flags = np.where(batch.flags[0] < 0, self._encoding.default_flags, batch.flags[0])
        return [(self._encoding.head_of(batch), flags)]

    def _first_free(
        self, candidates: Candidates, score: FloatArray, situation: Situation
    ) -> tuple[int, Config] | None:
        for index in _descending(score):
            config = self._encoding.config(int(candidates.heads[index]), candidates.batch.flags[index])
            if situation.given or situation.ledger.is_free(config):
                return index, config
        return None

    def _describe(self, knowledge: Knowledge, model: Model | None, batch: Batch, reason: str) -> Forecast:
        chance = float(knowledge.chance(batch)[0])
        shown: tuple[Estimate | None, ...] = (None, None, None)
        if model is not None:
            shown = estimates(model.predict(batch), 0, model.noise)
        by_model: dict[str, tuple[float, float]] = {}
        for name, each in _both(knowledge):
            predicted = each.predict(batch)
            deviation = float(np.sqrt(predicted.throughput_variance[0] + each.noise))
            by_model[name] = (float(predicted.throughput[0]), deviation)
        return Forecast(*shown, p_start=chance, expected_gain=None, reason=reason, by_model=by_model)


def _believed(knowledge: Knowledge, trust: Trust) -> Model | None:
    if trust.believed == PLAIN or knowledge.physics is None:
        return knowledge.plain
    return knowledge.physics


def _both(knowledge: Knowledge) -> Iterator[tuple[str, Model]]:
    if knowledge.physics is not None:
        yield PHYSICS, knowledge.physics
    if knowledge.plain is not None:
        yield PLAIN, knowledge.plain


def _why(trust: Trust, knowledge: Knowledge) -> str:
    if knowledge.physics is None:
        return "largest expected gain by throughput alone: no accept_length was told"
    if trust.believed == PLAIN:
        return "largest expected gain by throughput alone, which has predicted better than the step-time model"
    return "largest expected gain"


def _descending(score: FloatArray) -> Iterable[int]:
    return np.argsort(-score, kind="stable").tolist()
