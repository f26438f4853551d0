"""The configurations that a proposal is chosen from: few of millions, the ones that could matter.

A small space is listed whole. Of a large one: all heads with the best flags known, all flags with the most
promising heads, the most promising of both together, and some at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, prod

import numpy as np

from sweeper.samplers.physics.batch import Batch, FloatArray, IntArray
from sweeper.samplers.physics.encoding import Encoding
from sweeper.samplers.physics.space import Config, position

WHOLE = 3000
"""Spaces of up to so many configurations are listed whole."""

_ALL_FLAGS = 1500
_NUM_RANDOM = 200
_NUM_HEADS = 200
_NUM_FLAGS = 5
_ROUNDS = 3

Score = Callable[[Batch], tuple[FloatArray, FloatArray]]
"""What is to be gained by each of a batch, and its expected value."""


@dataclass(frozen=True)
class Candidates:
    """m candidates: the index of each one's head, and what the models see of them."""

    heads: IntArray
    batch: Batch


@dataclass(frozen=True)
class Given:
    """What is not ours to choose. heads: indices that agree with it. flags: (column, index of value)."""

    heads: IntArray
    flags: tuple[tuple[int, int], ...]


def agreeing(encoding: Encoding, given: Config) -> Given:
    """What the given values leave to choose from. Names and values unknown here are left out.

    Of heads that contradict nothing those count that have most of the given names: who asks for a number of steps
    does not ask for a server that drafts nothing.
    """
    shared = [
        sum(name in head.values for name in given)
        if all(name not in head.values or position(head.values[name], (v,)) == 0 for name, v in given.items())
        else -1
        for head in encoding.heads
    ]
    most = max(shared, default=-1)
    heads = [index for index, count in enumerate(shared) if count == most >= 0]
    codes = [(c, position(given[p.name], p.values)) for c, p in enumerate(encoding.flags) if p.name in given]
    return Given(np.array(heads, dtype=np.int64), tuple((c, code) for c, code in codes if code >= 0))


class Pool:
    """Lists candidates of one space."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._choices = [
            list(range(len(flag.values))) if encoding.roles.flag_prior(flag).size > 0 else [int(default)]
            for flag, default in zip(encoding.flags, encoding.default_flags, strict=True)
        ]
        many = prod(len(choice) for choice in self._choices)
        self._all = np.array(list(product(*self._choices)), dtype=np.int64) if many <= _ALL_FLAGS else None
        if self._all is not None:
            self._all = self._all.reshape(many, len(self._choices))
        self._whole = many * len(encoding.heads) <= WHOLE

    def communication(self, columns: Sequence[int], default: IntArray) -> IntArray:
        """All settings of the given flags, the others at their default, the default itself first."""
        choices = [choice if c in columns else [int(default[c])] for c, choice in enumerate(self._choices)]
        settings = list(product(*choices)) if prod(len(choice) for choice in choices) <= _ALL_FLAGS else []
        return np.array([default, *settings], dtype=np.int64).reshape(1 + len(settings), len(default))

    def candidates(
        self, score: Score, best: Sequence[tuple[int, IntArray]], given: Given, rng: np.random.Generator
    ) -> Candidates:
        """Candidates around the `best` known configurations (head, flags), of which there may be none."""
        heads = given.heads
        if self._whole and self._all is not None:
            return self._combined(np.repeat(heads, len(self._all)), np.tile(self._all, (len(heads), 1)), given)
        found = [self.draw(given, rng)]
        start = [flags for _, flags in best] or [self._encoding.default_flags]
        promising = [head for head, _ in best if head in heads]
        shapes = self._combined(heads, np.tile(start[0], (len(heads), 1)), given)
        found.append(shapes)
        gain, mean = score(shapes.batch)
        top = np.concatenate([_largest(gain, 2), _largest(mean, 1)])
        promising = list(dict.fromkeys([*shapes.heads[top].tolist(), *promising]))
        worth = heads[np.unique(np.concatenate([_largest(gain, _NUM_HEADS), _largest(mean, _NUM_HEADS // 4)]))]
        flags: list[IntArray] = []
        for head in promising:
            settings = self._settings(head, start, given, score, rng)
            found.append(settings)
            gain, mean = score(settings.batch)
            top = np.concatenate([_largest(gain, 2), _largest(mean, 1)])
            flags += list(settings.batch.flags[top])
        rows = np.unique(_distinct(flags, _NUM_FLAGS + len(promising)), axis=0)
        found += [self._combined(worth, np.tile(row, (len(worth), 1)), given) for row in rows]
        return Candidates(np.concatenate([c.heads for c in found]), Batch.join([c.batch for c in found]))

    def _settings(
        self, head: int, start: Sequence[IntArray], given: Given, score: Score, rng: np.random.Generator
    ) -> Candidates:
        """Flags to try with one head: all of them, or those reached by a few changes from good ones."""
        if self._all is not None:
            return self._combined(np.full(len(self._all), head), self._all, given)
        rows = np.vstack([*(self._changed(row, 2, rng) for row in start), self._drawn(_NUM_RANDOM, rng)])
        found = [self._combined(np.full(len(rows), head), rows, given)]
        for _ in range(_ROUNDS):
            gain, mean = score(found[-1].batch)
            top = np.unique(np.concatenate([_largest(gain, 3), _largest(mean, 2)]))
            rows = np.vstack([self._changed(found[-1].batch.flags[i], 1, rng) for i in top])
            found.append(self._combined(np.full(len(rows), head), rows, given))
        return Candidates(np.concatenate([c.heads for c in found]), Batch.join([c.batch for c in found]))

    def _changed(self, row: IntArray, most: int, rng: np.random.Generator) -> IntArray:
        """The row with one value changed, or up to `most`; of more than _ALL_FLAGS rows so many at random."""
        singles = [(c, v) for c, choice in enumerate(self._choices) for v in choice if v != row[c]]
        rows = [row]
        for count in range(1, most + 1):
            room = _ALL_FLAGS - len(rows)
            if comb(len(singles), count) <= 2 * _ALL_FLAGS:
                several = [list(changes) for changes in combinations(singles, count) if _differ(changes)]
                if len(several) > room:
                    several = [several[i] for i in rng.choice(len(several), room, replace=False)]
            else:
                drawn = ([singles[i] for i in rng.choice(len(singles), count, replace=False)] for _ in range(room))
                several = [changes for changes in drawn if _differ(changes)]
            for changes in several:
                changed = row.copy()
                for column, value in changes:
                    changed[column] = value
                rows.append(changed)
        return np.array(rows, dtype=np.int64)

    def _drawn(self, num: int, rng: np.random.Generator) -> IntArray:
        columns = [rng.choice(choice, size=num) for choice in self._choices]
        return np.array(columns, dtype=np.int64).T.reshape(num, len(self._choices))

    def draw(self, given: Given, rng: np.random.Generator) -> Candidates:
        """Candidates at random."""
        return self._combined(rng.choice(given.heads, size=_NUM_RANDOM), self._drawn(_NUM_RANDOM, rng), given)

    def _combined(self, heads: IntArray, flags: IntArray, given: Given) -> Candidates:
        chosen = flags.copy()
        for column, code in given.flags:
            chosen[:, column] = code
        return Candidates(heads, self._encoding.combine(heads, chosen))


def _differ(changes: Sequence[tuple[int, int]]) -> bool:
    """Whether each changes another column."""
    return len({column for column, _ in changes}) == len(changes)


def _distinct(rows: Sequence[IntArray], most: int) -> IntArray:
    """The first `most` different ones."""
    found = dict.fromkeys(tuple(row.tolist()) for row in rows)
    return np.array(list(found)[:most], dtype=np.int64)


def _largest(values: FloatArray, num: int) -> IntArray:
    return np.argsort(-values, kind="stable")[:num]
