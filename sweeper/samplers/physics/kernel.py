"""How alike two configurations are: the parts of the covariance that both step time and plain throughput use.

One part per system flag, and six more: the tree's shape, stairs in the tokens verified (tiles of the GPU), the
drafter, flags that act differently on a speculating server, pairs of flags, and flags that act by the tree's
shape. A flag counts in these as its own effect is expected to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.gp import Sizes
from sweeper.samplers.physics.roles import FlagPrior
from sweeper.samplers.physics.space import SearchParameter

_NEIGHBOUR_SHARE = 0.85
"""Of an ordered flag's effect: what neighbouring values share."""

_SPREADS = (1.0, 1.2, 0.7, 0.5, 0.5, 0.5)
_FLAG_SPREAD = 0.6
"""How unsure the logarithms of the structural parts' sizes are, in their order, and those of flags.

Shapes and stairs differ most from machine to machine (a GPU that is bound by compute has stairs, others none).
"""

_DILUTION = 0.5
"""0: a flag changes each step by the same share. 1: by the same time."""

_LARGEST = 0.04
"""A flag expected to do more than this (CUDA graphs) does not for that reason interact more."""

_HARDLY_MORE = 0.06
"""What flags do together, and what one does otherwise to a server that drafts, is hardly ever more than this."""

_TOGETHER = 0.2
"""Expected of pairs of flags, and of flags by the tree's shape, each: a share of what all flags do by themselves.

Set on simulated servers: with 0.3 the errors expected of leads were 1.3 to 1.6 times those made. With 0.12
they were foretold best, but what flags do together is rare and then large: late nights found less.
"""

_NEXT_TO_NOTHING = 0.004
"""A flag expected to do no more than this by itself is expected to do nothing together with others."""

_ALONE = 1e-6
_FEW_PAIRS = 1e-3
"""The share of pairs of two different flags among all, by weight: with less there are none to speak of."""


@dataclass(frozen=True)
class Structure:
    """Expected standard deviations of the parts that have nothing to do with flags."""

    shape: float
    stairs: float
    drafter: float

    def sizes(self) -> tuple[float, ...]:
        """In the order of the parts."""
        return (self.shape, self.stairs, self.drafter)


class Kernel:
    """The parts for one set of flags: the flags' own first, then the structural ones."""

    def __init__(self, flags: Sequence[SearchParameter], priors: Sequence[FlagPrior]) -> None:
        self._tables = [_embedding(flag) for flag in flags]
        self._squares = [np.linalg.cholesky((table @ table.T) ** 2) for table in self._tables]
        self._owner = np.repeat(np.arange(len(flags)), [table.shape[1] for table in self._tables])
        sizes = np.array([prior.size for prior in priors]).clip(0, _LARGEST)
        sizes[sizes <= _NEXT_TO_NOTHING] = _ALONE
        self._weights = sizes / sizes.sum() if len(flags) else sizes
        self._pairs = len(flags) > 1 and 1 - (self._weights**2).sum() > _FEW_PAIRS
        differs = (
            np.array([p.size if p.differs is None else p.differs for p in priors]).clip(1e-6, _HARDLY_MORE) ** 2
        )
        self._differs = float(np.sqrt(differs.sum()))
        self._differing = differs / differs.sum() if len(flags) else differs

    def prior(self, flag_sizes: FloatArray, structure: Structure, noise: float) -> Sizes:
        """The expected sizes of all parts. flag_sizes: the flags' own."""
        together = float(flag_sizes.clip(0, _HARDLY_MORE).sum())
        among_flags = (self._differs, _TOGETHER * together, _TOGETHER * together)
        sizes = np.concatenate([flag_sizes, structure.sizes(), among_flags])
        spreads = np.concatenate([np.full(self.num_flags, _FLAG_SPREAD), _SPREADS])
        return Sizes(np.log(np.maximum(sizes, 1e-4)), spreads, math.log(noise))

    @property
    def num_flags(self) -> int:
        """How many parts are one flag's own."""
        return len(self._tables)

    def parts(self, left: Batch, right: Batch) -> FloatArray:
        """All parts with unit size: [c, left, right]."""
        a, b = self._embed(left), self._embed(right)
        own = [a[:, self._owner == f] @ b[:, self._owner == f].T for f in range(self.num_flags)]
        return np.array([*own, *self._structural(left, right, a, b)])

    def mixed(self, left: Batch, right: Batch, variances: FloatArray) -> FloatArray:
        """The parts summed with their variances: [left, right]."""
        a, b = self._embed(left), self._embed(right)
        total: FloatArray = (a * variances[: self.num_flags][self._owner]) @ b.T
        structural = self._structural(left, right, a, b)
        for variance, part in zip(variances[self.num_flags :], structural, strict=True):
            part *= variance
            total += part
        return total

    def diagonal(self, batch: Batch, variances: FloatArray) -> FloatArray:
        """The variance of each configuration by itself: [n]."""
        speculative = batch.speculative.astype(float)
        stairs, depth = _stairs(batch), _depth(batch)
        shape, stair, drafter, speculation, pairs, tree = variances[self.num_flags :]
        whole = variances[: self.num_flags].sum() + min(1, self.num_flags) * (speculation + tree)
        whole = whole * _strength(batch) ** 2 + pairs * self._pairs * _strength(batch) ** 4
        structural = shape * speculative + stair * (stairs**2).sum(axis=1) / 8 + drafter * (depth**2).sum(axis=1)
        return np.asarray(whole + structural)

    def alike(self, left: Batch, right: Batch) -> FloatArray:
        """How far the flags are the same, similar values counting in part: [left, right], 1 at most."""
        if not self.num_flags:
            return np.ones((len(left), len(right)))
        return self._weighted(self._values(left), self._values(right), self._weights)

    def _values(self, batch: Batch) -> FloatArray:
        columns = [table[batch.flags[:, f] + 1] for f, table in enumerate(self._tables)]
        return np.concatenate(columns, axis=1) if columns else np.zeros((len(batch), 0))

    def _embed(self, batch: Batch) -> FloatArray:
        """The values as they act on a whole step."""
        return self._values(batch) * _strength(batch)[:, None]

    def _structural(self, left: Batch, right: Batch, a: FloatArray, b: FloatArray) -> Iterator[FloatArray]:
        same = np.asarray(left.speculative[:, None] == right.speculative[None], dtype=float)
        near = shape_similarity(left, right) * same
        both = np.outer(left.speculative, right.speculative).astype(float)
        yield near * both
        yield _stairs(left) @ _stairs(right).T / 8
        yield (left.drafter[:, None] == right.drafter[None]) * (_depth(left) @ _depth(right).T)
        alike = self._weighted(a, b, self._weights)
        yield self._weighted(a, b, self._differing) * same
        yield self._paired(left, right, alike, self._weights)
        yield alike * near

    def _weighted(self, a: FloatArray, b: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray((a * weights[self._owner]) @ b.T)

    def _paired(self, left: Batch, right: Batch, alike: FloatArray, weights: FloatArray) -> FloatArray:
        """How alike two configurations are in pairs of flags, without the flags by themselves."""
        if not self._pairs:
            return np.zeros_like(alike)
        remaining = 1 - (weights**2).sum()
        single = np.zeros_like(alike)
        both = np.outer(_strength(left) ** 2, _strength(right) ** 2)
        for f, table in enumerate(self._squares):
            if weights[f] > 0:
                single += weights[f] ** 2 * (table[left.flags[:, f] + 1] @ table[right.flags[:, f] + 1].T)
        return np.asarray((alike**2 - both * single) / remaining)


def shape_similarity(left: Batch, right: Batch) -> FloatArray:
    """1 for trees of the same shape, less the more steps, tokens and topk differ: [left, right]."""
    a, b = _shape(left), _shape(right)
    distance = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None] - 2 * a @ b.T
    return np.asarray(np.exp(-0.5 * np.maximum(distance, 0)))


def _shape(batch: Batch) -> FloatArray:
    columns = (batch.num_steps / 4, np.log2(batch.draft_tokens) / 2.5, np.log2(batch.topk) / 2)
    return np.stack(columns, axis=1) * batch.speculative[:, None]


def _stairs(batch: Batch) -> FloatArray:
    tokens = batch.draft_tokens
    columns = (np.ceil(tokens / 8) / 2, np.ceil(tokens / 16), np.ceil(tokens / 32) * 2)
    return np.stack(columns, axis=1) * batch.speculative[:, None]


def _strength(batch: Batch) -> FloatArray:
    """How much of a step the flags act on, at first guess: drafting and its host time are beyond them."""
    longer = 1.5 + 0.06 * (batch.num_steps - 1) + 0.01 * (batch.draft_tokens - 1)
    return np.where(batch.speculative, longer**-_DILUTION, 1.0)


def _depth(batch: Batch) -> FloatArray:
    """What a drafter's own speed acts on: each step, and more with every further draft forward."""
    columns = (np.ones(len(batch)), (batch.num_steps - 1) / 3)
    return np.stack(columns, axis=1) * batch.speculative[:, None] / 2**0.5


def _embedding(flag: SearchParameter) -> FloatArray:
    """Rows (absent, first value, second value, …) whose inner products say how alike the values act."""
    num = len(flag.values)
    alike = np.eye(num)
    if flag.ordered and num > 1:
        apart = np.subtract.outer(np.arange(num), np.arange(num)) / (0.5 * (num - 1))
        alike = _NEIGHBOUR_SHARE * np.exp(-0.5 * apart**2) + (1 - _NEIGHBOUR_SHARE) * alike
    whole = np.eye(num + 1)
    whole[1:, 1:] = alike
    return np.asarray(np.linalg.cholesky(whole))
