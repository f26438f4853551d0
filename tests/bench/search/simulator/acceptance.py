"""How many drafts a target accepts: played token by token, round by round.

Each round has an endless tree of tokens of its own, whose probabilities are drawn from the round and the place in
the tree. The drafter grows its tree as EAGLE-2 does (arXiv 2406.16858): at each level the `topk` most confident
nodes are expanded to `topk` children each, and the most confident of all candidates are verified. The target's
continuation follows other probabilities than the drafter believes in, so the drafter's order is not the best one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from tests.bench.search.simulator.configurations import MAX_STEPS, MAX_TOKENS, TOPKS, token_counts
from tests.bench.search.simulator.draws import Floats, uniform

Ints = NDArray[np.int64]
BRANCHES = 8
"""How many children of a node are told apart; the target may also continue with none of them."""
NOT_DRAFTED = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Drafter:
    """One drafter on one kind of text.

    first_logit: of the probability of its first guess; decay: what is taken off it at each depth (8 numbers).
    round_spread, node_spread: standard deviations of that logit between rounds, and between nodes.
    sibling_ratio, tail_mass: how the rest is shared among the other children, and how much of it they have.
    calibration, bias: the target's logit of the first guess is calibration x the drafter's + bias.
    """

    stream: int
    first_logit: float
    decay: tuple[float, ...]
    round_spread: float
    node_spread: float
    sibling_ratio: float
    tail_mass: float
    calibration: float
    bias: float

    def confidences(self, rounds: Ints, nodes: Ints, depth: int) -> Floats:
        """What it believes of the children of these nodes: probabilities, falling along the last axis of 8."""
        of_round = self.round_spread * ndtri(uniform(self.stream, rounds, 77))
        of_node = self.node_spread * ndtri(uniform(self.stream, rounds, nodes, 5))
        first = expit(self.first_logit - self.decay[depth] + of_round + of_node)
        shares = self.sibling_ratio ** np.arange(BRANCHES - 1)
        others = (1 - first)[..., None] * (shares / shares.sum() * self.tail_mass)
        falling: Floats = -np.sort(-np.concatenate([first[..., None], others], axis=-1), axis=-1)
        return falling

    def truths(self, confidences: Floats) -> Floats:
        """What the target really does at nodes with these confidences: probabilities of the same children."""
        first = np.clip(confidences[..., 0], 1e-6, 1 - 1e-6)
        true_first = expit(self.calibration * logit(first) + self.bias)
        others = confidences[..., 1:] / (1 - first)[..., None] * (1 - true_first)[..., None]
        return np.concatenate([true_first[..., None], others], axis=-1)


@dataclass(frozen=True)
class Continuation:
    """What the target writes, [rounds, depth]: the nodes (-1: off the tree), and the confidence in each path."""

    nodes: Ints
    scores: Floats


def histograms(drafter: Drafter, num_rounds: int) -> Floats:
    """The share of rounds that accept a drafts: [topk, num_steps, draft_tokens, a], topk by its place in TOPKS."""
    shares = np.zeros((len(TOPKS), MAX_STEPS + 1, MAX_TOKENS + 1, MAX_STEPS + 1))
    truth = continuation(drafter, num_rounds)
    for place, topk in enumerate(TOPKS):
        better, drafted = _standing(drafter, topk, truth)
        for num_steps in range(1, MAX_STEPS + 1):
            ranks = np.where(drafted[:, :num_steps], better[:, :num_steps, num_steps - 1], NOT_DRAFTED)
            for draft_tokens in token_counts(num_steps, topk):
                accepted = (ranks < draft_tokens - 1).sum(axis=1)
                counts = np.bincount(accepted, minlength=MAX_STEPS + 1)
                shares[place, num_steps, draft_tokens] = counts / num_rounds
    return shares


def continuation(drafter: Drafter, num_rounds: int) -> Continuation:
    """Draw the target's tokens."""
    rounds = np.arange(num_rounds)
    nodes = np.full((num_rounds, MAX_STEPS), -1, dtype=np.int64)
    scores = np.zeros((num_rounds, MAX_STEPS))
    node, score, on_tree = np.zeros(num_rounds, np.int64), np.ones(num_rounds), np.ones(num_rounds, bool)
    for depth in range(MAX_STEPS):
        confidences = drafter.confidences(rounds, node, depth)
        reached = np.cumsum(drafter.truths(confidences), axis=-1)
        child = (uniform(drafter.stream, rounds, depth, 999)[:, None] > reached).sum(axis=-1)
        on_tree &= child < BRANCHES
        child = np.minimum(child, BRANCHES - 1)
        node = _children(node, child)
        score = score * confidences[rounds, child]
        nodes[:, depth] = np.where(on_tree, node, -1)
        scores[:, depth] = score
    return Continuation(nodes, scores)


def _standing(drafter: Drafter, topk: int, truth: Continuation) -> tuple[Ints, NDArray[np.bool_]]:
    """Where the target's tokens stand among the drafter's candidates.

    Returns the number of candidates of the first d levels that the drafter prefers to the target's token at depth
    t ([rounds, t, d]), and whether that token is a candidate at all ([rounds, t]); then so are all before it.
    """
    num_rounds = len(truth.nodes)
    better = np.zeros((num_rounds, MAX_STEPS, MAX_STEPS), np.int64)
    drafted = np.zeros((num_rounds, MAX_STEPS), bool)
    for depth, (nodes, scores) in enumerate(_levels(drafter, topk, num_rounds)):
        drafted[:, depth] = (nodes == truth.nodes[:, depth, None]).any(axis=1)
        better[:, :, depth] = (scores[:, None, :] > truth.scores[:, :, None]).sum(axis=2)
    return better.cumsum(axis=2), drafted


def _levels(drafter: Drafter, topk: int, num_rounds: int) -> Iterator[tuple[Ints, Floats]]:
    """The candidates of each level, [rounds, candidates]: their nodes, and the confidence in each path."""
    rounds = np.arange(num_rounds)[:, None]
    beam, beam_scores = np.zeros((num_rounds, 1), np.int64), np.ones((num_rounds, 1))
    for depth in range(MAX_STEPS):
        confidences = drafter.confidences(rounds, beam, depth)[..., :topk]
        scores = (beam_scores[..., None] * confidences).reshape(num_rounds, -1)
        nodes = _children(beam[..., None], np.arange(topk)).reshape(num_rounds, -1)
        yield nodes, scores
        kept = np.argpartition(-scores, topk - 1, axis=1)[:, :topk]
        beam, beam_scores = np.take_along_axis(nodes, kept, 1), np.take_along_axis(scores, kept, 1)


def _children(nodes: Ints, places: Ints) -> Ints:
    """A number for the child at a place (0 to 7) of a node; the root is 0."""
    return nodes * (BRANCHES + 1) + places + 1
