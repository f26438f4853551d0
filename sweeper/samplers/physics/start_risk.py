"""The chance that a configuration starts: sparse blame over values and pairs of values.

Whatever a started server had is innocent, alone and in pairs. What is left shares the blame for each failure,
and more of it goes to what explains several failures: few causes explain much.
"""

from __future__ import annotations

import numpy as np

from sweeper.samplers.physics.batch import Batch, BoolArray, FloatArray, IntArray

PRIOR_VALUE = 0.03
PRIOR_PAIR = 0.006
"""Chance that a value, or a pair of values, keeps a server from starting."""

_ROUNDS = 25
_WORTH_MENTIONING = 1e-3
_LEAST = 0.002

_MOST_VALUES = 1 << 31
"""No parameter lists so many."""


class StartRisk:
    """What started and failed servers say. With neither, only the values never tried count."""

    def __init__(self, batch: Batch, failed: BoolArray) -> None:
        """batch: all configurations that started or failed by their own fault."""
        traits = _traits(batch)
        pairs = _pairs(traits)
        self._singles = _Blame(traits, failed)
        self._pairs = _Blame(pairs, failed)
        _share_blame(self._singles, self._pairs)
        self._started = [np.unique(column[~failed]) for column in traits.T]

    def chance(self, batch: Batch) -> FloatArray:
        """P(starts), [n], between 0 and 1."""
        traits = _traits(batch)
        guilt = self._singles.guilt(traits)
        for column, (left, right) in enumerate(_combinations(traits.shape[1])):
            if self._pairs.has_suspects(column):
                guilt += self._pairs.guilt_of(column, _pair(traits[:, left], traits[:, right]))
        novelty = np.zeros(len(batch))
        for column, seen in enumerate(self._started):
            novelty += (traits[:, column] >= 0) & ~np.isin(traits[:, column], seen)
        return np.asarray((1 - PRIOR_VALUE) ** novelty * np.clip(1 - guilt, _LEAST, 1))


class _Blame:
    """Suspects of one kind: per column the codes that failed and never started, each with its share of blame."""

    def __init__(self, codes: IntArray, failed: BoolArray) -> None:
        bad = codes[failed]
        self.suspects: list[IntArray] = []
        self.where: list[IntArray] = []
        offset = 0
        for column in range(codes.shape[1]):
            names = np.setdiff1d(bad[:, column], codes[~failed, column])
            names = names[names >= 0]
            index = np.searchsorted(names, bad[:, column])
            known = np.isin(bad[:, column], names)
            self.suspects.append(names)
            self.where.append(np.where(known, index + offset, -1))
            offset += len(names)
        self.num = offset
        self.blame = np.zeros(offset)

    def members(self) -> BoolArray:
        """[failure, suspect]: whether the failed configuration had it."""
        number = len(self.where[0]) if self.where else 0
        matrix = np.zeros((number, self.num), dtype=bool)
        for where in self.where:
            rows = np.flatnonzero(where >= 0)
            matrix[rows, where[rows]] = True
        return matrix

    def has_suspects(self, column: int) -> bool:
        return len(self.suspects[column]) > 0

    def guilt(self, codes: IntArray) -> FloatArray:
        total = np.zeros(len(codes))
        for column in range(codes.shape[1]):
            if self.has_suspects(column):
                total += self.guilt_of(column, codes[:, column])
        return total

    def guilt_of(self, column: int, codes: IntArray) -> FloatArray:
        names = self.suspects[column]
        offset = sum(len(earlier) for earlier in self.suspects[:column])
        index = np.minimum(np.searchsorted(names, codes), len(names) - 1)
        share = self.blame[offset + index]
        return np.where((names[index] == codes) & (share > _WORTH_MENTIONING), share, 0.0)


def _share_blame(singles: _Blame, pairs: _Blame) -> None:
    """Expectation maximisation: a failure's blame goes to its suspects by their weight, which is what they got."""
    prior = np.concatenate([np.full(singles.num, PRIOR_VALUE), np.full(pairs.num, PRIOR_PAIR)])
    members = np.concatenate([singles.members(), pairs.members()], axis=1).astype(float)
    members = members[members.any(axis=1)]
    if not len(members):
        return
    weight, got = prior, np.zeros(len(prior))
    for _ in range(_ROUNDS):
        shares = members * weight
        got = (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0)
        weight = prior + got
    blame = got / (members.sum(axis=0) + 0.2)
    singles.blame, pairs.blame = blame[: singles.num], blame[singles.num :]


def _traits(batch: Batch) -> IntArray:
    """Codes per configuration, -1 where one does not apply: flags, drafter, and how large the tree is."""
    spec, steps, topk, tokens = batch.speculative, batch.num_steps, batch.topk, batch.draft_tokens
    sizes = (spec, spec & (topk > 1), spec & (topk >= 8), tokens > 24, tokens > 40, steps > 5)
    columns = [np.where(size, 1, -1) for size in sizes]
    return np.column_stack([batch.flags, batch.drafter, *columns]).astype(np.int64)


def _combinations(num: int) -> list[tuple[int, int]]:
    return [(left, right) for left in range(num) for right in range(left + 1, num)]


def _pairs(traits: IntArray) -> IntArray:
    columns = [_pair(traits[:, a], traits[:, b]) for a, b in _combinations(traits.shape[1])]
    return np.column_stack(columns)


def _pair(left: IntArray, right: IntArray) -> IntArray:
    """One code for two; -1 where either does not apply."""
    return np.where((left >= 0) & (right >= 0), left * _MOST_VALUES + right, -1)
