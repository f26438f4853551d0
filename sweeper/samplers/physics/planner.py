"""Which configuration to try next, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sweeper.samplers.distinct import SpaceExhausted
from sweeper.samplers.physics.batch import Batch, FloatArray, IntArray
from sweeper.samplers.physics.choice import weigh
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.forecast import Estimates, Forecast, estimates
from sweeper.samplers.physics.knowledge import Knowledge
from sweeper.samplers.physics.ledger import Ledger
from sweeper.samplers.physics.opening import PROBING, openings, probes_left
from sweeper.samplers.physics.pool import Candidates, Given, Pool, agreeing
from sweeper.samplers.physics.prediction import Model
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
    turn: the number of the trial.
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
            return None if forecast is None else Proposal(situation.given, forecast)
        return (
            self._open(situation, given)
            or self._probe(situation, given)
            or self._choose(situation, given)
            or self._guess(situation, given)
            or self._draw(situation, given)
        )

    def forecast(self, knowledge: Knowledge, config: Config, reason: str) -> Forecast | None:
        """What is expected of one configuration; None where the space cannot express it."""
        batch, _ = self._encoding.encode([config], np.zeros(1, dtype=bool))
        if not len(batch):
            return None
        model = knowledge.physics or knowledge.plain
        forecast = _describe(knowledge, model, batch, reason)
        if model is None:
            return forecast
        gain, _ = knowledge.gain(model, batch, knowledge.best(model).take([0]))
        return replace(forecast, expected_gain=float(gain[0]))

    def _open(self, situation: Situation, given: Given) -> Proposal | None:
        """The baseline and a probe first: without them no model has anything to go by."""
        for head, reason in openings(self._encoding, situation.knowledge.evidence):
            if head in given.heads:
                flags = self._flags_to_begin_with(situation.knowledge, head)[None].copy()
                for column, code in given.flags:
                    flags[:, column] = code
                heads = np.array([head])
                candidates = Candidates(heads, self._encoding.combine(heads, flags))
                chosen = self._first_free(candidates, np.zeros(1), situation)
                if chosen is not None:
                    return self._proposal(situation, candidates, chosen, reason)
        return None

    def _flags_to_begin_with(self, knowledge: Knowledge, head: int) -> IntArray:
        """The default ones; for a probe those with the fastest all-reduces, where these were timed."""
        default = self._encoding.default_flags
        if knowledge.physics is None or not self._encoding.heads[head].speculative:
            return default
        options = self._pool.communication(knowledge.timed, default)
        batch = self._encoding.combine(np.full(len(options), head), options)
        time = knowledge.physics.predict(batch).time
        assert time is not None
        fastest = int(np.argmin(time[0] - np.log(knowledge.chance(batch))))
        return np.asarray(options[fastest])

    def _probe(self, situation: Situation, given: Given) -> Proposal | None:
        """A tree with a drafter that nothing is known of, and whatever flags are worth most with it."""
        left = probes_left(self._encoding, situation.knowledge)
        heads = np.array([head for head in left if head in given.heads], dtype=np.int64)
        found = self._choose(situation, replace(given, heads=heads)) if len(heads) else None
        if found is None:
            return None
        return replace(found, forecast=replace(found.forecast, reason=PROBING, remaining_gain=None))

    def _choose(self, situation: Situation, given: Given) -> Proposal | None:
        """The configuration that is worth most by the model that predicts best."""
        knowledge = situation.knowledge
        trust = judge(situation.told)
        model = _believed(knowledge, trust)
        if model is None:
            return None
        known = knowledge.best(model)
        best = known.take([0])
        candidates = self._pool.candidates(
            lambda batch: knowledge.gain(model, batch, best), self._around(known), given, situation.rng
        )
        worth = weigh(knowledge, model, candidates.batch, best, situation.rng)
        reason, score = _why(trust, knowledge), worth.total
        if trust.astray and situation.turn % 2:
            reason = "no model has predicted the latest trials: what the best trials have in common"
            score = vote(candidates.batch, knowledge.evidence) + np.log(worth.chance)
        chosen = self._first_free(candidates, score, situation)
        remaining = worth.gain(trust.widening)
        promising = self._first_free(candidates, remaining, situation)
        if chosen is None or promising is None:
            return None
        proposal = self._proposal(situation, candidates, chosen, reason, model)
        forecast = replace(
            proposal.forecast,
            expected_gain=float(worth.gain()[chosen[0]]),
            remaining_gain=None if situation.given else float(remaining[promising[0]]),
        )
        return replace(proposal, forecast=forecast)

    def _guess(self, situation: Situation, given: Given) -> Proposal | None:
        """With nothing measured: what is likeliest to start."""
        knowledge = situation.knowledge

        def score(batch: Batch) -> tuple[FloatArray, FloatArray]:
            chance = knowledge.chance(batch)
            return chance, chance

        candidates = self._pool.candidates(score, [], given, situation.rng)
        chosen = self._first_free(candidates, knowledge.chance(candidates.batch), situation)
        return chosen and self._proposal(situation, candidates, chosen, "the likeliest to start of those left")

    def _draw(self, situation: Situation, given: Given) -> Proposal:
        """Some free configuration, when the pool has none."""
        for _ in range(_RANDOM_ATTEMPTS):
            candidates = self._pool.draw(given, situation.rng)
            chosen = self._first_free(candidates, np.zeros(len(candidates.heads)), situation)
            if chosen is not None:
                return self._proposal(situation, candidates, chosen, "one of the few left")
        raise SpaceExhausted("no legal configuration is left that was not tried")

    def _around(self, known: Batch) -> list[tuple[int, IntArray]]:
        """The best known configurations as heads and flags, near which new ones are looked for."""
        flags = np.where(known.flags < 0, self._encoding.default_flags, known.flags)
        return [(self._encoding.head_of(known.take([i])), flags[i]) for i in range(len(known))]

    def _first_free(
        self, candidates: Candidates, score: FloatArray, situation: Situation
    ) -> tuple[int, Config] | None:
        """The candidate with the highest score that is legal and free, with its configuration."""
        for index in np.argsort(-score, kind="stable").tolist():
            config = self._encoding.config(int(candidates.heads[index]), candidates.batch.flags[index])
            if situation.given or situation.ledger.is_free(config):
                return int(index), config
        return None

    def _proposal(
        self,
        situation: Situation,
        candidates: Candidates,
        chosen: tuple[int, Config],
        reason: str,
        model: Model | None = None,
    ) -> Proposal:
        knowledge = situation.knowledge
        batch = candidates.batch.take([chosen[0]])
        believed = model or knowledge.physics or knowledge.plain
        return Proposal(chosen[1], _describe(knowledge, believed, batch, reason))


def _describe(knowledge: Knowledge, model: Model | None, batch: Batch, reason: str) -> Forecast:
    shown = Estimates() if model is None else estimates(model.predict(batch), model.noise)
    by_model: dict[str, tuple[float, float]] = {}
    for name, each in ((PHYSICS, knowledge.physics), (PLAIN, knowledge.plain)):
        if each is not None:
            predicted = each.predict(batch)
            deviation = float(np.sqrt(predicted.throughput_variance[0] + each.noise))
            by_model[name] = (float(predicted.throughput[0]), deviation)
    return Forecast(
        shown.throughput,
        shown.accept_length,
        shown.step_time_ms,
        p_start=float(knowledge.chance(batch)[0]),
        reason=reason,
        by_model=by_model,
    )


def _believed(knowledge: Knowledge, trust: Trust) -> Model | None:
    if trust.believed == PLAIN or knowledge.physics is None:
        return knowledge.plain
    return knowledge.physics


def _why(trust: Trust, knowledge: Knowledge) -> str:
    if knowledge.physics is None:
        return "most to gain or to learn, by throughput alone: no accept_length was told"
    if trust.believed == PLAIN:
        return "most to gain or to learn, by throughput alone: it has predicted better than the step-time model"
    return "most to gain or to learn"
