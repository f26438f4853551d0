"""How flags change each other's effect, and how wrong the physics may be.

All effects are added to the logarithm of a step's time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.bench.search.simulator.configurations import (
    FLAG_VALUES,
    FLAGS,
    MAX_STEPS,
    TOPKS,
    Config,
    Trees,
)
from tests.bench.search.simulator.draws import Floats
from tests.bench.search.simulator.machine import Machine
from tests.bench.search.simulator.regimes import Link

NO_TREE = len(TOPKS)


@dataclass(frozen=True)
class Wave:
    """A random ripple over the shapes of trees."""

    directions: Floats
    phase: float
    height: float

    def at(self, trees: Trees) -> Floats:
        """Its effect on each tree."""
        along_steps, along_tokens, along_topk = self.directions
        angle = along_steps * trees.num_steps + along_tokens * np.log2(trees.draft_tokens)
        ripple: Floats = self.height * np.sin(angle + along_topk * np.log2(trees.topk) + self.phase)
        return ripple


@dataclass(frozen=True)
class Interactions:
    """Effects by the numbers of flag values (FLAG_VALUES).

    pairs: [value, value], symmetric. with_topk: [value, topk], topk by its place in TOPKS, the baseline last.
    with_steps: [value, num_steps]. waves and drafters: only where the physics is wrong.
    """

    pairs: Floats
    with_topk: Floats
    with_steps: Floats
    waves: tuple[Wave, ...] = ()
    drafters: tuple[float, ...] = (0.0, 0.0, 0.0)

    def baseline(self, flags: Config) -> float:
        """The effect on a server without speculation."""
        return self._among(flags) + float(self.with_topk[_numbers(flags), NO_TREE].sum())

    def speculative(self, flags: Config, trees: Trees) -> Floats:
        """The effect on each tree."""
        numbers = _numbers(flags)
        topk = np.searchsorted(TOPKS, trees.topk)
        effect = self._among(flags) + self.with_topk[numbers][:, topk].sum(axis=0)
        effect = effect + self.with_steps[numbers][:, trees.num_steps].sum(axis=0)
        for wave in self.waves:
            effect = effect + wave.at(trees)
        return np.asarray(effect + np.array(self.drafters)[trees.drafter])

    def _among(self, flags: Config) -> float:
        numbers = _numbers(flags)
        chosen = self.pairs[np.ix_(numbers, numbers)]
        return float(chosen.sum() - np.trace(chosen)) / 2


def draw_interactions(rng: np.random.Generator, machine: Machine) -> Interactions:
    """Sparse and small, about 1 % each; none of flags that this machine ignores."""
    live = np.array([_matters(name, machine) for name, _ in FLAG_VALUES])
    count = len(FLAG_VALUES)
    one_way = _sparse(rng, (count, count), 0.012, 0.12)
    return Interactions(
        pairs=(one_way + one_way.T) * np.outer(live, live),
        with_topk=_sparse(rng, (count, NO_TREE + 1), 0.010, 0.15) * live[:, None],
        with_steps=_sparse(rng, (count, MAX_STEPS + 1), 0.006, 0.15) * live[:, None],
    )


def distort(rng: np.random.Generator, interactions: Interactions, wrong: float) -> tuple[Interactions, Floats]:
    """The physics does not hold, by so much: 0 not at all, 0.3 moderately, 1 extremely.

    Every pair of flags interacts, flags change with the tree, and the time ripples over the shapes of trees. Also
    returns what is added to the logarithm of the reported accept_length, by num_steps.
    """
    if wrong == 0:
        return interactions, np.zeros(MAX_STEPS + 1)
    one_way = rng.normal(0, 0.05 * wrong, interactions.pairs.shape)
    pairs = interactions.pairs + (one_way + one_way.T) / np.sqrt(2)
    with_topk = interactions.with_topk + rng.normal(0, 0.05 * wrong, interactions.with_topk.shape)
    with_steps = interactions.with_steps + rng.normal(0, 0.03 * wrong, interactions.with_steps.shape)
    waves = tuple(
        Wave(rng.normal(size=3) * (1.2, 1.5, 1.2), rng.uniform(0, 6.28), rng.normal(0, 0.10 * wrong))
        for _ in range(6)
    )
    drafters = tuple(float(effect) for effect in rng.normal(0, 0.08 * wrong, 4))
    misreport = rng.uniform(-0.5, 0.5, MAX_STEPS + 1) * min(1.0, wrong)
    return replace(
        interactions,
        pairs=pairs,
        with_topk=with_topk,
        with_steps=with_steps,
        waves=waves,
        drafters=drafters,
    ), misreport


def _numbers(flags: Config) -> list[int]:
    return [FLAG_VALUES[name, flags[name]] for name in FLAGS]


def _matters(flag: str, machine: Machine) -> bool:
    if flag == "NCCL_P2P_LEVEL":
        return machine.regime.link is Link.PCIE
    if flag == "disable_custom_all_reduce":
        return machine.collectives.custom is not None
    return not (flag.startswith("NCCL_") and machine.regime.num_gpus == 1)


def _sparse(rng: np.random.Generator, shape: tuple[int, int], spread: float, share: float) -> Floats:
    effects = rng.normal(0, spread, shape)
    return effects * (rng.random(shape) < share)
