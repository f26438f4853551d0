"""One row of the tables of rules, and what the rows begin with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sweeper.engines.base import HostFacts
from sweeper.spec import FlagValue, ServerConfig
from tests.engines.sglang_cases import BASE, CHAIN, EAGLE3, H200, KIMI, KIMI_EAGLE3, LLAMA, TREE, host, with_flags

NEW, MIDDLE, OLD = "0.5.23", "0.5.15.post1", "0.5.10.post1"
ADAPTIVE = {**CHAIN, "speculative_adaptive": True, "speculative_num_draft_tokens": None}
NGRAM = {**BASE, "speculative_algorithm": "NGRAM"}
DFLASH = {**BASE, "speculative_algorithm": "DFLASH", "speculative_draft_model_path": "/draft"}
DSPARK = {**DFLASH, "speculative_algorithm": "DSPARK"}
UNO = {**BASE, "speculative_algorithm": "UNO", "uno_lora_path": "/lora", "speculative_num_draft_tokens": 8}
KIMI_TREE = {**TREE, "speculative_draft_attention_backend": "triton"}


@dataclass(frozen=True)
class Row:
    """`flags` break `rule` under `version`; with `mended` over them they do not."""

    rule: str
    words: str
    flags: dict[str, Any]
    mended: dict[str, Any]
    version: str = MIDDLE
    env: dict[str, str] = field(default_factory=dict)
    target: dict[str, Any] = field(default_factory=lambda: LLAMA)
    draft: dict[str, Any] = field(default_factory=lambda: EAGLE3)
    gpu: str = H200

    @property
    def facts(self) -> HostFacts:
        return host(self.version, self.target, self.draft, self.gpu)

    def config(self, **over: FlagValue | None) -> ServerConfig:
        return ServerConfig(flags=with_flags(self.flags, **over).flags, env=self.env)


def on_kimi(rule: str, words: str, flags: dict[str, Any], mended: dict[str, Any], **more: Any) -> Row:
    """A row with Kimi-K2.5 as target."""
    return Row(rule, words, flags, mended, **{"target": KIMI, "draft": KIMI_EAGLE3, **more})
