"""The model folders of a stand-in host: configurations as published, weights as a number only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GIB = 1 << 30
KIMI_TEXT = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "kimi_k2",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 163840,
    "max_position_embeddings": 262144,
    "n_routed_experts": 384,
    "num_experts_per_tok": 8,
}
EAGLE3 = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 7168,
    "num_hidden_layers": 1,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "head_dim": 128,
    "intermediate_size": 18432,
    "vocab_size": 163840,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 262144,
    "torch_dtype": "bfloat16",
}
MODELS: dict[str, tuple[dict[str, Any], int]] = {
    "kimi-k2.5": (
        {
            "architectures": ["KimiK25ForConditionalGeneration"],
            "model_type": "kimi_k25",
            "text_config": KIMI_TEXT,
            "vision_config": {"hidden_size": 1152},
        },
        594,
    ),
    "kimi-k2": (KIMI_TEXT, 594),
    "kimi-k2.5-eagle3": (EAGLE3, 6),
    "other-eagle3": ({**EAGLE3, "intermediate_size": 12288}, 5),
    "small-eagle3": ({**EAGLE3, "hidden_size": 2048, "num_attention_heads": 16}, 1),
    "wrong-hidden": ({**EAGLE3, "hidden_size": 2048, "num_attention_heads": 16}, 1),
    "mla-eagle3": ({**KIMI_TEXT, "architectures": ["Eagle3DeepseekV2ForCausalLM"], "num_hidden_layers": 1}, 6),
    "small-llama": (
        {
            **EAGLE3,
            "architectures": ["LlamaForCausalLM"],
            "num_hidden_layers": 16,
            "hidden_size": 2048,
            "draft_vocab_size": None,
        },
        3,
    ),
}
"""Name to (config.json, GiB of weights). `wrong-hidden` was made for another target than Kimi."""


def write_models(folder: Path) -> None:
    """All of them, each with a tokenizer."""
    for name, (config, gib) in MODELS.items():
        path = folder / name
        path.mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in config.items() if value is not None}
        (path / "config.json").write_text(json.dumps(kept, indent=1))
        index = {"metadata": {"total_size": gib * GIB}, "weight_map": {}}
        (path / "model.safetensors.index.json").write_text(json.dumps(index))
        tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ messages }}"}
        (path / "tokenizer_config.json").write_text(json.dumps(tokenizer))
        (path / "tokenizer.json").write_text('{"version": "1.0", "model": {"type": "WordLevel", "vocab": {}}}')
