"""How many drafts a verify step accepts, from six numbers per drafter.

A drafter's first choice is right with probability sigmoid(level - drop - decay * depth + spread * z), where z
varies from step to step (some text is easy): `drop` applies after the first token, which alone sees the
target's own features. What the first choice leaves is shared among its siblings, each `ratio` times the one
before, `mass` of it in all. The tree is grown as EAGLE-2 does: topk nodes per level by cumulative probability,
each with topk children, and of all of them the draft_tokens - 1 most probable are verified (the root is the
last one).

Source of the tree: EAGLE-2 (Li et al. 2024), and SGLang's `eagle_utils.py`, which follows it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sweeper.samplers.physics.batch import MAX_TREE_TOKENS, FloatArray

LEVEL, DROP, DECAY, SPREAD, RATIO, MASS = range(6)
"""The columns of a drafter's parameters."""

PRIOR_MEAN = np.array([0.7, 0.12, 0.12, 0.9, 0.55, 0.7])
PRIOR_SD = np.array([1.0, 0.15, 0.12, 0.4, 0.12, 0.12])
LOWER = np.array([-4.0, -0.2, -0.05, 0.05, 0.15, 0.2])
UPPER = np.array([5.0, 1.2, 1.0, 2.5, 0.9, 0.97])

_NODES = np.array([-(3**0.5), 0.0, 3**0.5])
_WEIGHTS = np.array([1 / 6, 2 / 3, 1 / 6])
"""Gauss-Hermite quadrature over how easy the text is."""

_NUM_SIBLINGS = 7


def survival_tables(
    parameters: FloatArray, topk: int, steps: Sequence[int], max_tokens: int = MAX_TREE_TOKENS
) -> dict[int, FloatArray]:
    """Per number of steps s the probability that at least d drafts are accepted: [b, tokens, d - 1], d up to s.

    parameters [b, 6]. `tokens` runs from 0 to max_tokens; a chain (topk 1) has only tokens = 1, whatever its
    length.
    """
    sure = _first_choice(parameters, max(steps))
    if topk == 1:
        survive = np.cumprod(sure, axis=2)
        mixed: FloatArray = np.einsum("z,bzd->bd", _WEIGHTS, survive)
        return {s: np.repeat(mixed[:, None, :s], 2, axis=1) for s in steps}
    levels = _grow(sure, _siblings(parameters), topk)
    return {s: _best_nodes(levels[:s], max_tokens) for s in steps}


def _first_choice(parameters: FloatArray, depth: int) -> FloatArray:
    """[b, quadrature node, depth]: probability that the drafter's first choice is right."""
    level, drop, decay, spread = (parameters[:, i, None, None] for i in (LEVEL, DROP, DECAY, SPREAD))
    depths = np.arange(depth)
    logit = level + spread * _NODES[:, None] - drop * (depths > 0) - decay * depths
    return np.asarray(1 / (1 + np.exp(-logit)))


def _siblings(parameters: FloatArray) -> FloatArray:
    """[b, 7]: shares of what the first choice leaves."""
    weights = parameters[:, RATIO, None] ** np.arange(_NUM_SIBLINGS)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True) * parameters[:, MASS, None])


def _grow(sure: FloatArray, siblings: FloatArray, topk: int) -> list[FloatArray]:
    """The cumulative probabilities of all nodes of each level: [b * quadrature nodes, number of nodes]."""
    num, nodes, depth = sure.shape
    share = np.repeat(siblings, nodes, axis=0)
    flat = sure.reshape(num * nodes, depth)
    beam = np.ones((num * nodes, 1))
    levels = []
    for d in range(depth):
        first = flat[:, d, None]
        children = -np.sort(-np.concatenate([first, (1 - first) * share], axis=1), axis=1)[:, :topk]
        level = (beam[:, :, None] * children[:, None, :]).reshape(num * nodes, -1)
        levels.append(level)
        beam = -np.sort(-level, axis=1)[:, :topk]
    return levels


def _best_nodes(levels: Sequence[FloatArray], max_tokens: int) -> FloatArray:
    """[b, tokens, depth]: summed probability per level of the best tokens - 1 nodes."""
    depth = np.repeat(np.arange(len(levels)), [level.shape[1] for level in levels])
    everything = np.concatenate(levels, axis=1)
    order = np.argsort(-everything, axis=1, kind="stable")[:, : max_tokens - 1]
    probability = np.take_along_axis(everything, order, axis=1)
    onehot = depth[order][:, :, None] == np.arange(len(levels))
    summed = np.cumsum(probability[:, :, None] * onehot, axis=1)
    weighted = summed.reshape(-1, len(_WEIGHTS), *summed.shape[1:])
    mixed = np.einsum("z,bznd->bnd", _WEIGHTS, weighted)
    table = np.zeros((mixed.shape[0], max_tokens + 1, len(levels)))
    table[:, 2 : 2 + mixed.shape[1]] = mixed
    table[:, 2 + mixed.shape[1] :] = mixed[:, -1:]
    return table
