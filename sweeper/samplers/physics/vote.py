"""What good configurations have in common and bad ones lack: the last resort when no model predicts.

The idea of TPE (Bergstra et al. 2011) on listed values: per part of the configuration the share among the best
over the share among the rest, multiplied. The best are half the square root of all: 2 of 16, 5 of 100.
"""

from __future__ import annotations

import numpy as np

from sweeper.samplers.physics.batch import Batch, FloatArray, IntArray
from sweeper.samplers.physics.evidence import Evidence

_BEST = 0.5


def vote(candidates: Batch, evidence: Evidence) -> FloatArray:
    """How much each candidate resembles the best observed rather than the others: a logarithm, [m].

    Failed configurations count among the others.
    """
    score = np.where(evidence.failed, -np.inf, evidence.log_throughput)
    known = np.flatnonzero(~np.isnan(score))
    order = known[np.argsort(-score[known], kind="stable")]
    num = max(1, int(np.ceil(_BEST * np.sqrt(len(order)))))
    seen, asked = _traits(evidence.batch), _traits(candidates)
    total = np.zeros(len(candidates))
    for column in range(seen.shape[1]):
        values = np.union1d(seen[:, column], asked[:, column])
        good = _shares(seen[order[:num], column], values)
        rest = _shares(seen[order[num:], column], values)
        total += np.log(good / rest)[np.searchsorted(values, asked[:, column])]
    return total


def _shares(seen: IntArray, values: IntArray) -> FloatArray:
    counts = np.bincount(np.searchsorted(values, seen), minlength=len(values)) + 1 / len(values)
    return np.asarray(counts / counts.sum())


def _traits(batch: Batch) -> IntArray:
    sizes = (np.log2(batch.draft_tokens) * 2).round()
    columns = (batch.speculative, batch.drafter, batch.num_steps, batch.topk, sizes)
    return np.column_stack([*columns, batch.flags]).astype(np.int64)
