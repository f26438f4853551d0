"""Nine kinds of machines and models, and four qualities of drafters; a surface draws its own from the ranges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Range = tuple[float, float]


class Link(StrEnum):
    """What connects the GPUs."""

    NONE = "none"
    PCIE = "pcie"
    NVLINK = "nvlink"


@dataclass(frozen=True)
class Regime:
    """Ranges of a model on a machine. Times in milliseconds, `_us` in microseconds.

    experts, active_experts: of a mixture, 0 of a dense model. message_kb: hidden state of one token.
    launch_ms, eager_launch_ms: the least time of a layer with CUDA graphs and without.
    dense_ms: reading all weights that every token needs; expert_ms: reading the active experts of one token;
    compute_ms: arithmetic per token, all layers.
    host_ms, speculation_host_ms: what the scheduler adds to a step; draft_ms: one forward of the drafter.
    all_reduce_us: the latency of a small one.
    """

    num_layers: int
    num_gpus: int
    link: Link
    experts: int
    active_experts: int
    launch_ms: Range
    eager_launch_ms: Range
    dense_ms: Range
    expert_ms: Range
    compute_ms: Range
    message_kb: int
    host_ms: Range
    speculation_host_ms: Range
    draft_ms: Range
    all_reduce_us: Range


REGIMES: dict[str, Regime] = {
    # One trillion parameters on eight GPUs without NVLink: launches and all-reduces are most of a step.
    "pcie_moe1t": Regime(
        num_layers=61, num_gpus=8, link=Link.PCIE, experts=384, active_experts=8,
        launch_ms=(0.085, 0.12), eager_launch_ms=(0.20, 0.30), dense_ms=(1.2, 2.2), expert_ms=(0.7, 1.1),
        compute_ms=(0.010, 0.03), message_kb=14, host_ms=(0.2, 0.6), speculation_host_ms=(3.0, 8.5),
        draft_ms=(0.6, 1.3), all_reduce_us=(22, 34),
    ),
    "nvl_moe1t": Regime(
        num_layers=61, num_gpus=8, link=Link.NVLINK, experts=384, active_experts=8,
        launch_ms=(0.07, 0.11), eager_launch_ms=(0.15, 0.25), dense_ms=(0.7, 1.3), expert_ms=(0.35, 0.7),
        compute_ms=(0.006, 0.015), message_kb=14, host_ms=(0.2, 0.6), speculation_host_ms=(1.0, 4.0),
        draft_ms=(0.3, 0.7), all_reduce_us=(7, 11),
    ),
    # 8B on one GPU; Llama-3.1-8B on an H100 is published with 158 and 373 tok/s.
    "tp1_dense8b": Regime(
        num_layers=32, num_gpus=1, link=Link.NONE, experts=0, active_experts=0,
        launch_ms=(0.02, 0.035), eager_launch_ms=(0.18, 0.3), dense_ms=(4.2, 6.5), expert_ms=(0, 0),
        compute_ms=(0.01, 0.04), message_kb=8, host_ms=(0.2, 0.6), speculation_host_ms=(1.0, 4.0),
        draft_ms=(0.3, 0.6), all_reduce_us=(0, 0),
    ),
    "nvl_dense70b": Regime(
        num_layers=80, num_gpus=4, link=Link.NVLINK, experts=0, active_experts=0,
        launch_ms=(0.03, 0.05), eager_launch_ms=(0.2, 0.3), dense_ms=(10, 16), expert_ms=(0, 0),
        compute_ms=(0.03, 0.1), message_kb=16, host_ms=(0.2, 0.6), speculation_host_ms=(1.5, 4.5),
        draft_ms=(0.5, 1.1), all_reduce_us=(6, 10),
    ),
    "pcie_dense32b": Regime(
        num_layers=64, num_gpus=4, link=Link.PCIE, experts=0, active_experts=0,
        launch_ms=(0.03, 0.05), eager_launch_ms=(0.2, 0.3), dense_ms=(8, 15), expert_ms=(0, 0),
        compute_ms=(0.05, 0.2), message_kb=10, host_ms=(0.2, 0.6), speculation_host_ms=(1.5, 4.5),
        draft_ms=(0.5, 1.1), all_reduce_us=(12, 22),
    ),
    # As gpt-oss-120b on two GPUs: short chains win.
    "tp2_moe120b": Regime(
        num_layers=36, num_gpus=2, link=Link.NVLINK, experts=128, active_experts=4,
        launch_ms=(0.05, 0.09), eager_launch_ms=(0.13, 0.22), dense_ms=(0.8, 1.4), expert_ms=(0.6, 1.2),
        compute_ms=(0.01, 0.04), message_kb=6, host_ms=(0.2, 0.6), speculation_host_ms=(0.8, 2.5),
        draft_ms=(0.3, 0.6), all_reduce_us=(5, 9),
    ),
    # Large experts: each further token to verify reads more of them.
    "pcie_moe235b": Regime(
        num_layers=94, num_gpus=8, link=Link.PCIE, experts=128, active_experts=8,
        launch_ms=(0.06, 0.09), eager_launch_ms=(0.15, 0.24), dense_ms=(1.5, 2.5), expert_ms=(2.0, 4.0),
        compute_ms=(0.015, 0.05), message_kb=8, host_ms=(0.2, 0.6), speculation_host_ms=(2.0, 5.5),
        draft_ms=(0.4, 0.9), all_reduce_us=(18, 30),
    ),
    # An old or small GPU, quantised weights: verifying soon costs arithmetic.
    "tp1_compute": Regime(
        num_layers=40, num_gpus=1, link=Link.NONE, experts=0, active_experts=0,
        launch_ms=(0.03, 0.05), eager_launch_ms=(0.2, 0.3), dense_ms=(9, 16), expert_ms=(0, 0),
        compute_ms=(0.5, 1.6), message_kb=10, host_ms=(0.3, 0.8), speculation_host_ms=(1.5, 4.0),
        draft_ms=(0.5, 1.0), all_reduce_us=(0, 0),
    ),
    # A mixture that drafts with a layer of its own, under an overlapping scheduler.
    "nvl_moe_mtp": Regime(
        num_layers=61, num_gpus=8, link=Link.NVLINK, experts=256, active_experts=8,
        launch_ms=(0.06, 0.1), eager_launch_ms=(0.15, 0.24), dense_ms=(0.7, 1.3), expert_ms=(0.5, 1.0),
        compute_ms=(0.006, 0.02), message_kb=14, host_ms=(0.1, 0.4), speculation_host_ms=(0.3, 1.5),
        draft_ms=(0.25, 0.5), all_reduce_us=(7, 11),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Quality:
    """How good a drafter is: the logit of its first guess, and how much is lost per depth."""

    first_logit: Range
    loss: Range


QUALITIES: dict[str, Quality] = {
    "strong": Quality((1.7, 2.5), (0.00, 0.08)),
    "good": Quality((0.8, 1.5), (0.05, 0.2)),
    "fair": Quality((0.0, 0.8), (0.1, 0.35)),
    "bad": Quality((-1.8, -0.5), (0.15, 0.5)),
}
BEST_DRAFTER: dict[str, tuple[str, ...]] = {
    "pcie_moe1t": ("fair", "good", "fair", "bad"),
    "nvl_moe1t": ("good", "strong", "fair"),
    "tp1_dense8b": ("strong", "good", "fair"),
    "nvl_dense70b": ("strong", "good", "fair"),
    "pcie_dense32b": ("good", "fair", "bad"),
    "tp2_moe120b": ("fair", "good"),
    "pcie_moe235b": ("fair", "good", "bad"),
    "tp1_compute": ("good", "strong", "fair"),
    "nvl_moe_mtp": ("strong", "good"),
}
"""The quality of the best drafter of a regime's first, second ... surface; then from the front again."""
_TENTH: tuple[str, tuple[str, ...]] = ("pcie_moe1t", ("bad", "fair", "good"))


def kind_of(seed: int) -> tuple[str, str]:
    """The regime of a surface, and the quality of its best drafter. One in ten is a second pcie_moe1t."""
    round_number, place = divmod(seed, 10)
    name, qualities = _TENTH
    if place < len(REGIMES):
        name = list(REGIMES)[place]
        qualities = BEST_DRAFTER[name]
    return name, qualities[round_number % len(qualities)]
