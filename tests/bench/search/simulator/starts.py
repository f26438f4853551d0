"""Which configurations do not start, and how they fail: always in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tests.bench.search.simulator.configurations import BACKENDS, Config, Trees
from tests.bench.search.simulator.draws import Floats
from tests.bench.search.simulator.machine import Machine
from tests.bench.search.simulator.regimes import Link


class Failure(StrEnum):
    """How a start fails."""

    OUT_OF_MEMORY = "out of memory"
    HANG = "hang"
    UNSUPPORTED = "unsupported"
    CRASH = "crash"


@dataclass(frozen=True)
class Starts:
    """The failing regions of one server.

    ll128_hangs: with CUDA graphs, without NVLink. no_tree_backend, no_graph_backend: attention backends that
    refuse trees, and CUDA graphs. memory_gib: what graphs may take; drafter_gib: what each drafter takes of it.
    """

    ll128_hangs: bool
    sys_hangs: bool
    tree_simple_crashes: bool
    no_tree_backend: str | None
    no_graph_backend: str | None
    memory_gib: float
    drafter_gib: Floats
    big_tree_crashes: bool

    def of_flags(self, flags: Config) -> Failure | None:
        """What these flags alone come to, with or without speculation."""
        graphs = not flags["disable_cuda_graph"]
        protocol = flags["NCCL_PROTO"]
        if self.no_graph_backend == flags["attention_backend"] and graphs:
            return Failure.UNSUPPORTED
        if self.tree_simple_crashes and flags["NCCL_ALGO"] == "Tree" and protocol == "Simple":
            return Failure.CRASH
        if self.sys_hangs and flags["NCCL_P2P_LEVEL"] == "SYS":
            return Failure.HANG
        if self.ll128_hangs and protocol == "LL128" and graphs:
            return Failure.HANG
        return None

    def all_reduce_hangs(self, flags: Config) -> bool:
        """Whether already the all-reduces fail."""
        protocol = flags["NCCL_PROTO"]
        return (
            (self.ll128_hangs and protocol == "LL128")
            or (self.sys_hangs and flags["NCCL_P2P_LEVEL"] == "SYS")
            or (self.tree_simple_crashes and flags["NCCL_ALGO"] == "Tree" and protocol == "Simple")
        )

    def of_tree(self, flags: Config, trees: Trees) -> Failure | None:
        """What one tree comes to."""
        if failure := self.of_flags(flags):
            return failure
        if self._out_of_memory(flags, trees)[0]:
            return Failure.OUT_OF_MEMORY
        if self._refused(flags, trees)[0]:
            return Failure.UNSUPPORTED
        return Failure.CRASH if self._too_big(trees)[0] else None

    def starting(self, flags: Config, trees: Trees) -> NDArray[np.bool_]:
        """Which of the trees start."""
        if self.of_flags(flags):
            return np.zeros(len(trees), bool)
        return ~(self._out_of_memory(flags, trees) | self._refused(flags, trees) | self._too_big(trees))

    def _out_of_memory(self, flags: Config, trees: Trees) -> NDArray[np.bool_]:
        needed = self.drafter_gib[trees.drafter]
        if not flags["disable_cuda_graph"]:
            branches = (trees.num_steps - 1) * trees.topk
            needed = needed + 0.25 + trees.draft_tokens / 64 * 0.6 + branches / 56 * 0.5
        return np.asarray(needed > self.memory_gib)

    def _refused(self, flags: Config, trees: Trees) -> NDArray[np.bool_]:
        return np.asarray((trees.topk > 1) & (self.no_tree_backend == flags["attention_backend"]))

    def _too_big(self, trees: Trees) -> NDArray[np.bool_]:
        return np.asarray((trees.topk == 8) & (trees.draft_tokens >= 48) & self.big_tree_crashes)


def draw_starts(rng: np.random.Generator, machine: Machine) -> Starts:
    """The failing regions of a machine: none of its configurations to a third of them, 8 % on average."""
    on_pcie = machine.regime.link is Link.PCIE
    others = BACKENDS[1:]
    return Starts(
        ll128_hangs=on_pcie and rng.random() < 0.25,
        sys_hangs=on_pcie and rng.random() < 0.2,
        tree_simple_crashes=machine.regime.num_gpus > 2 and rng.random() < 0.08,
        no_tree_backend=str(rng.choice(others)) if rng.random() < 0.15 else None,
        no_graph_backend=str(rng.choice(others)) if rng.random() < 0.08 else None,
        memory_gib=rng.uniform(1.0, 2.4),
        drafter_gib=rng.uniform(0.02, 0.18, 3),
        big_tree_crashes=rng.random() < 0.3,
    )
