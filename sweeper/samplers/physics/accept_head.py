"""The acceptance head: expected accept_length of every tree, from each drafter's fit and a small rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sweeper.samplers.physics.batch import Batch, FloatArray
from sweeper.samplers.physics.drafter_fit import Accepted, DrafterFit, fit_drafter, prior_fit, table_index
from sweeper.samplers.physics.gp import Posterior, Sizes, condition, learn_sizes
from sweeper.samplers.physics.kernel import Kernel, shape_similarity

NOISE = 0.008
_SIZES = np.log(np.array([0.015, 0.015, 0.025, 0.015, 0.01]))
"""Of the rest: common, per drafter, per shape, per shape and drafter, and by flags."""
_SPREAD = np.full(5, 0.7)

_MAX_SHAPES = 120
"""Of one drafter that are fitted: those with most launches."""


@dataclass
class AcceptHead:
    """A fitted head. rest: None until something was measured."""

    fits: list[DrafterFit]
    kernel: Kernel
    batch: Batch | None = None
    sizes: Sizes = field(default_factory=lambda: Sizes(_SIZES, _SPREAD, float(np.log(NOISE))))
    rest: Posterior | None = None
    _tables: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = field(default_factory=dict)

    def predict(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """Expected log accept_length and its variance, [n] each; 0 where nothing is drafted."""
        mean, variance = np.zeros(len(batch)), np.zeros(len(batch))
        index = np.flatnonzero(batch.speculative)
        if not len(index):
            return mean, variance
        drafting = batch.take(index)
        mean[index], slopes = self.parametric(drafting)
        variance[index] = (slopes**2).sum(axis=1)
        weights = self.sizes.variances
        if self.rest is None or self.batch is None:
            variance[index] += weights.sum()
            return mean, variance
        cross = np.tensordot(weights, _parts(self.kernel, drafting, self.batch), 1)
        mean[index] += self.rest.mean(cross)
        variance[index] += self.rest.variance(cross, np.full(len(index), weights.sum()))
        return mean, variance

    def lead(self, batch: Batch, other: Batch) -> tuple[FloatArray, FloatArray]:
        """How much longer it is expected to be than that of one other configuration, and the variance: [n] each.

        On the logarithm, as everywhere.
        """
        if not other.speculative[0]:
            return self.predict(batch)
        than, unsure = self.predict(other)
        mean, variance = np.full(len(batch), -than[0]), np.full(len(batch), unsure[0])
        index = np.flatnonzero(batch.speculative)
        if len(index):
            mean[index], variance[index] = self._lead(batch.take(index), other)
        return mean, variance

    def _lead(self, batch: Batch, other: Batch) -> tuple[FloatArray, FloatArray]:
        """As `lead`, where all draft."""
        (ours, slopes), (theirs, other_slopes) = self.parametric(batch), self.parametric(other)
        same = (batch.drafter == other.drafter[0]).astype(float)
        variance = (slopes**2).sum(axis=1) + (other_slopes**2).sum() - 2 * same * (slopes @ other_slopes[0])
        weights = self.sizes.variances
        apart = 2 * (weights.sum() - np.tensordot(weights, _parts(self.kernel, batch, other), 1)[:, 0])
        if self.rest is None or self.batch is None:
            return ours - theirs, np.asarray(variance + apart)
        cross, other_cross = (
            np.tensordot(weights, _parts(self.kernel, side, self.batch), 1) for side in (batch, other)
        )
        mean = ours - theirs + self.rest.mean(cross - other_cross)
        return np.asarray(mean), variance + self.rest.variance(cross - other_cross, apart)

    def covariance(self, left: Batch, right: Batch) -> FloatArray:
        """The covariance of the log accept_lengths of two batches: [left, right]; 0 where nothing is drafted."""
        both = np.outer(left.speculative, right.speculative).astype(float)
        a, b = self.parametric(left)[1], self.parametric(right)[1]
        weights = self.sizes.variances
        rest = np.tensordot(weights, _parts(self.kernel, left, right), 1)
        if self.rest is not None and self.batch is not None:
            crosses = [np.tensordot(weights, _parts(self.kernel, side, self.batch), 1) for side in (left, right)]
            rest = self.rest.covariance(crosses[0], crosses[1], rest)
        return np.asarray(both * ((left.drafter[:, None] == right.drafter[None]) * (a @ b.T) + rest))

    def parametric(self, batch: Batch) -> tuple[FloatArray, FloatArray]:
        """What the drafters' fits alone say: the mean [n], and its slopes [n, 6] by independent unit errors."""
        mean, slopes = np.zeros(len(batch)), np.zeros((len(batch), 6))
        topk, steps = batch.topk.astype(int), batch.num_steps.astype(int)
        for drafter in np.unique(batch.drafter[batch.speculative]):
            for k in np.unique(topk):
                rows = np.flatnonzero((batch.drafter == drafter) & (topk == k))
                if len(rows):
                    table = self._table(int(drafter), int(k), int(steps[rows].max()))
                    where = steps[rows], table_index(int(k), batch.draft_tokens[rows].astype(int))
                    mean[rows], slopes[rows] = table[0][where], table[1][where]
        return mean, slopes

    def _table(self, drafter: int, topk: int, max_steps: int) -> tuple[FloatArray, FloatArray]:
        known = self._tables.get((drafter, topk))
        if known is None or len(known[0]) <= max_steps:
            known = self.fits[drafter].tables(topk, max_steps)
            self._tables[drafter, topk] = known
        return known


def fit_acceptance(
    kernel: Kernel,
    num_drafters: int,
    batch: Batch,
    log_length: FloatArray,
    survival: Sequence[tuple[float, ...] | None],
) -> AcceptHead:
    """Fit drafting configurations whose accept_length was measured. There may be none.

    log_length [n]; survival: shares of steps accepting at least 1, 2, … drafts, where they are known.
    """
    groups = [np.flatnonzero(batch.drafter == drafter) for drafter in range(num_drafters)]
    order = sorted(range(num_drafters), key=lambda drafter: -len(groups[drafter]))
    fits: list[DrafterFit] = [prior_fit(None)] * num_drafters
    first: DrafterFit | None = None
    for drafter in order:
        rows = groups[drafter]
        seen = _by_shape(batch.take(rows), log_length[rows], [survival[row] for row in rows.tolist()])
        fits[drafter] = fit_drafter(seen, prior_fit(first))
        if first is None and len(rows):
            first = fits[drafter]
    head = AcceptHead(fits, kernel)
    if not len(batch):
        return head
    rest = log_length - head.parametric(batch)[0]
    parts = _parts(kernel, batch, batch)
    nothing = np.zeros((len(batch), len(batch)))
    sizes = learn_sizes(parts, nothing, np.zeros(len(batch)), rest, head.sizes)
    noise = sizes.noise * np.eye(len(batch))
    covariance = np.tensordot(sizes.variances, parts, 1) + noise
    head.batch, head.sizes, head.rest = batch, sizes, condition(covariance, rest)
    return head


def _by_shape(
    batch: Batch, log_length: FloatArray, survival: Sequence[tuple[float, ...] | None]
) -> list[Accepted]:
    rows: dict[tuple[int, int, int], list[int]] = {}
    for i in range(len(batch)):
        shape = (int(batch.num_steps[i]), int(batch.topk[i]), int(batch.draft_tokens[i]))
        rows.setdefault(shape, []).append(i)
    found: list[Accepted] = []
    for shape, members in rows.items():
        curves = [curve for i in members if (curve := survival[i])]
        common: FloatArray | None = None
        if curves:
            depth = min(len(curve) for curve in curves)
            common = np.mean([curve[:depth] for curve in curves], axis=0)
        found.append(Accepted(shape, len(members), float(log_length[members].mean()), common))
    found.sort(key=lambda seen: -seen.num_launches)
    return found[:_MAX_SHAPES]


def _parts(kernel: Kernel, left: Batch, right: Batch) -> FloatArray:
    near = shape_similarity(left, right)
    same = np.asarray(left.drafter[:, None] == right.drafter[None], dtype=float)
    return np.array([np.ones_like(near), same, near, near * same, kernel.alike(left, right)])
