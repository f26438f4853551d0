"""Engines that specsweep does not drive, but whose results it can import: what their flags mean."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.engines.base import Speculation
from sweeper.spec import ServerConfig

VLLM = Speculation(
    algorithm="method",
    drafter=("method", "model"),
    num_steps="num_speculative_tokens",
    topk="",
    draft_tokens="",
    algorithms=("EAGLE", "EAGLE3", "MTP", "DRAFT_MODEL"),
)
"""The entries of --speculative-config (vllm/config/speculative.py, 0.32.0): chains only."""

FOREIGN: Mapping[str, Speculation] = {"vllm": VLLM}


def is_speculative(config: ServerConfig, roles: Speculation) -> bool:
    """Whether a configuration of such an engine drafts."""
    return str(config.flags.get(roles.algorithm, "none")).lower() not in ("none", "false")


def simplicity(config: ServerConfig, roles: Speculation) -> tuple[float, ...]:
    """Sort key, the smallest the simplest: no speculation, fewer drafts, fewer flags."""
    steps = config.flags.get(roles.num_steps)
    number = float(steps) if isinstance(steps, int) else 0.0
    return (float(is_speculative(config, roles)), number, float(len(config.flags)))
