"""Configurations and hosts for the tests of SGLang's rules."""

from __future__ import annotations

import json
from typing import Any

from sweeper.engines.base import HostFacts
from sweeper.engines.sglang.spec import canonical_config, rule_violations, without_effect
from sweeper.spec import FlagValue, ServerConfig

PRO_6000 = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
H200 = "NVIDIA H200"
B200 = "NVIDIA B200"
A100 = "NVIDIA A100-SXM4-80GB"

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "num_hidden_layers": 32,
}
KIMI: dict[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "text_config": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "hidden_size": 7168,
        "vocab_size": 163840,
        "kv_lora_rank": 512,
        "max_position_embeddings": 262144,
        "num_nextn_predict_layers": 0,
    },
}
DEEPSEEK: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "hidden_size": 7168,
    "vocab_size": 129280,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "num_nextn_predict_layers": 1,
}
EAGLE3: dict[str, Any] = {
    **LLAMA,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 32000,
}
KIMI_EAGLE3: dict[str, Any] = {
    **EAGLE3,
    "hidden_size": 7168,
    "vocab_size": 163840,
    "max_position_embeddings": 262144,
}
KIMI_MLA_EAGLE3: dict[str, Any] = {
    **KIMI_EAGLE3,
    "architectures": ["Eagle3DeepseekV2ForCausalLM"],
    "kv_lora_rank": 512,
}
EAGLE: dict[str, Any] = {**LLAMA, "architectures": ["LlamaForCausalLMEagle"], "num_hidden_layers": 1}

BASE: dict[str, FlagValue] = {
    "attention_backend": "triton",
    "mem_fraction_static": 0.85,
    "max_running_requests": 8,
}
CHAIN: dict[str, FlagValue] = {
    **BASE,
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_model_path": "/draft",
    "speculative_draft_attention_backend": "triton",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}
TREE: dict[str, FlagValue] = {**CHAIN, "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 8}


def host(
    version: str = "0.5.15.post1",
    target: dict[str, Any] | None = None,
    draft: dict[str, Any] | None = None,
    gpu: str = PRO_6000,
) -> HostFacts:
    """Eight GPUs, /model (a Llama unless said otherwise) and /draft (an EAGLE3 draft for it)."""
    files = {
        "/model/config.json": json.dumps(LLAMA if target is None else target),
        "/draft/config.json": json.dumps(EAGLE3 if draft is None else draft),
    }
    return HostFacts(engine_version=version, model_path="/model", files=files, gpu_names=(gpu,) * 8)


def with_flags(base: dict[str, FlagValue], **flags: FlagValue | None) -> ServerConfig:
    """`base` with these flags; None takes one away."""
    merged = {**base, **flags}
    return ServerConfig(flags={name: value for name, value in merged.items() if value is not None})


def canonical(config: ServerConfig, facts: HostFacts | None = None) -> dict[str, FlagValue]:
    """The flags of the canonical form."""
    return dict(canonical_config(config, facts or host()).flags)


def violations(config: ServerConfig, facts: HostFacts | None = None) -> str:
    """All violations as one text."""
    return "\n".join(rule_violations(config, facts or host()))


def dead(config: ServerConfig, facts: HostFacts | None = None) -> str:
    """All that has no effect as one text."""
    return "\n".join(without_effect(config, facts or host()))
