"""One machine, drawn from the ranges of its regime: what its kernels, its collectives and its scheduler cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tests.bench.search.simulator.configurations import BACKENDS
from tests.bench.search.simulator.regimes import Link, Regime

Random = np.random.Generator
COSTS = (
    "launch_ms", "eager_launch_ms", "dense_ms", "expert_ms", "compute_ms", "host_ms", "speculation_host_ms",
    "draft_ms", "all_reduce_us",
)  # fmt: skip
"""What a regime has a range for, in the order in which it is drawn."""


@dataclass(frozen=True)
class Kernels:
    """The target's layers, as in `Regime`, with one number for each range.

    tile: tokens are computed in multiples of it. expert_overlap: how independent the experts of neighbouring
    tokens are (1: fully). verify_attention: attention over a tree, in units of attention over one token.
    """

    launch_ms: float
    eager_launch_ms: float
    dense_ms: float
    expert_ms: float
    compute_ms: float
    host_ms: float
    speculation_host_ms: float
    draft_ms: float
    all_reduce_us: float
    tile: int
    expert_overlap: float
    verify_attention: float


@dataclass(frozen=True)
class Path:
    """What a way through the interconnect multiplies: the latency of an all-reduce, and its bytes."""

    latency: float
    size: float


@dataclass(frozen=True)
class Collectives:
    """All-reduce. custom: SGLang's own kernel in units of the latency; None where the server ignores the flag.

    eager_share: what launching a collective outside of a CUDA graph adds; graph_share_ll: what LL adds inside.
    """

    bandwidth_gb_s: float
    protocols: Mapping[str, Path]
    algorithms: Mapping[str, Path]
    p2p_levels: Mapping[str, float]
    custom: float | None
    eager_share: float
    graph_share_ll: float


@dataclass(frozen=True)
class Backend:
    """An attention backend: factors of decoding, of verifying, and what each token of a tree adds."""

    decode: float
    verify: float
    per_token: float


@dataclass(frozen=True)
class Scheduler:
    """The host's part, the drafters', and what branching costs. Times in milliseconds.

    saved_baseline, saved_speculative: the share of the host's time that many continuous decode steps save at most.
    odd_share, odd_multiple: what a number of draft tokens costs that is no such multiple.
    """

    backends: Mapping[str, Backend]
    saved_baseline: float
    saved_speculative: float
    drafter_sizes: tuple[float, ...]
    branch_ms: float
    tree_host_ms: float
    sampling_ms: float
    head_ms: float
    odd_share: float
    odd_multiple: int


@dataclass(frozen=True)
class Machine:
    """All of it."""

    regime: Regime
    kernels: Kernels
    collectives: Collectives
    scheduler: Scheduler

    @property
    def num_drafters(self) -> int:
        return len(self.scheduler.drafter_sizes)


def draw_machine(rng: Random, regime: Regime) -> Machine:
    """A machine with two or three drafters."""
    costs = {name: rng.uniform(*getattr(regime, name)) for name in COSTS}
    num_drafters = int(rng.integers(2, 4))
    tile = int(rng.choice([8, 16, 16, 32]))
    kernels = Kernels(
        **costs, tile=tile, expert_overlap=rng.uniform(0.55, 0.95), verify_attention=rng.uniform(1.0, 2.4)
    )
    return Machine(regime, kernels, _draw_collectives(rng, regime), _draw_scheduler(rng, num_drafters))


def _draw_collectives(rng: Random, regime: Regime) -> Collectives:
    bandwidths = {Link.PCIE: rng.uniform(14, 30), Link.NVLINK: rng.uniform(150, 350), Link.NONE: 1e9}
    on_pcie = regime.link is Link.PCIE
    slow_default = rng.random() < (0.5 if on_pcie else 0.15)
    simple = rng.uniform(1.5, 1.9)
    protocols = {
        "default": Path(simple * 0.97, 1.0) if slow_default else Path(rng.uniform(1.0, 1.08), 1.25),
        "LL": Path(1.0, 2.0),
        "LL128": Path(rng.uniform(1.03, 1.2), 1.08),
        "Simple": Path(simple, 1.0),
    }
    tree = rng.uniform(0.75, 1.15) if regime.num_gpus > 2 else rng.uniform(1.0, 1.1)
    tree_by_default = rng.random() < 0.35
    algorithms = {
        "Ring": Path(1.0, 1.0),
        "Tree": Path(tree, rng.uniform(1.15, 1.6)),
        "default": Path(tree, 1.3) if tree_by_default else Path(1.0, 1.0),
    }
    levels = dict.fromkeys(("default", "PIX", "PHB", "SYS"), 1.0)
    custom: float | None = None
    if on_pcie:
        levels["SYS"] = rng.uniform(0.72, 1.12)
        default = str(rng.choice(["PHB", "SYS", "PIX"], p=[0.55, 0.3, 0.15]))
        levels["PIX"] = rng.uniform(1.15, 1.5)
        levels["default"] = levels[default]
        custom = rng.uniform(0.8, 1.25) if rng.random() < 0.3 else None
    elif regime.link is Link.NVLINK:
        custom = rng.uniform(0.45, 0.8)
    eager_share, graph_share_ll = rng.uniform(0.0, 0.35), rng.uniform(-0.04, 0.06)
    return Collectives(bandwidths[regime.link], protocols, algorithms, levels, custom, eager_share, graph_share_ll)


def _draw_scheduler(rng: Random, num_drafters: int) -> Scheduler:
    factors = [(1.0, 1.0)] + [(rng.uniform(0.75, 1.35), rng.uniform(0.7, 1.6)) for _ in BACKENDS[1:]]
    backends = {
        name: Backend(decode, verify, rng.uniform(0, 0.012))
        for name, (decode, verify) in zip(BACKENDS, factors, strict=True)
    }
    saved_baseline, saved_speculative = rng.uniform(0, 0.8), rng.uniform(-0.10, 0.15)
    sizes = rng.permutation([1.0, rng.uniform(0.6, 1.0), rng.uniform(1.0, 2.0)])[:num_drafters]
    branch_ms, tree_host_ms, sampling_ms, head_ms = (
        rng.uniform(low, high) for low, high in ((0.02, 0.12), (0.05, 0.9), (0.0, 0.012), (0.15, 0.5))
    )
    odd_share = rng.uniform(0, 0.05) if rng.random() < 0.5 else 0.0
    return Scheduler(
        backends=backends,
        saved_baseline=saved_baseline,
        saved_speculative=saved_speculative,
        drafter_sizes=tuple(float(size) for size in sizes),
        branch_ms=branch_ms,
        tree_host_ms=tree_host_ms,
        sampling_ms=sampling_ms,
        head_ms=head_ms,
        odd_share=odd_share,
        odd_multiple=int(rng.choice([2, 4, 8])),
    )
