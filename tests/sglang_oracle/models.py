"""The models of the oracle's combinations, as config.json, and the fields that are compared."""

from __future__ import annotations

from typing import Any

_LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-05,
    "torch_dtype": "bfloat16",
}
_DEEPSEEK: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "num_hidden_layers": 61,
    "n_routed_experts": 384,
    "num_experts_per_tok": 8,
    "n_group": 1,
    "topk_group": 1,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 163840,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}

_DRAFT: dict[str, Any] = {**_LLAMA, "num_hidden_layers": 1}
_WIDE_DRAFT: dict[str, Any] = {**_DRAFT, "hidden_size": 7168, "num_attention_heads": 64, "vocab_size": 163840}

GPUS = ("sm80", "sm90", "sm100", "sm120")

MODELS: dict[str, dict[str, Any]] = {
    "llama": _LLAMA,
    "qwen": {**_LLAMA, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2"},
    "deepseek": _DEEPSEEK,
    "eagle3": {**_DRAFT, "draft_vocab_size": 32000, "architectures": ["LlamaForCausalLMEagle3"]},
    "eagle3-wide": {**_WIDE_DRAFT, "draft_vocab_size": 32000, "architectures": ["LlamaForCausalLMEagle3"]},
    "eagle": {**_DRAFT, "architectures": ["LlamaForCausalLMEagle"]},
    "eagle-wide": {**_WIDE_DRAFT, "architectures": ["LlamaForCausalLMEagle"]},
    "small": {**_LLAMA, "num_hidden_layers": 4, "hidden_size": 1024},
    "small-wide": {**_WIDE_DRAFT, "num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 8},
    "block": {**_LLAMA, "num_hidden_layers": 5, "architectures": ["DFlashDraftModel"], "block_size": 8},
    "block-wide": {**_WIDE_DRAFT, "num_hidden_layers": 5, "architectures": ["DFlashDraftModel"], "block_size": 8},
}

FIELDS = (
    "attention_backend",
    "chunked_prefill_size",
    "decode_attention_backend",
    "disable_overlap_schedule",
    "enable_mixed_chunk",
    "max_running_requests",
    "page_size",
    "pp_size",
    "prefill_attention_backend",
    "schedule_conservativeness",
    "speculative_adaptive",
    "speculative_algorithm",
    "speculative_draft_attention_backend",
    "speculative_draft_model_path",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "speculative_num_steps",
    "speculative_use_rejection_sampling",
    "tp_size",
)
"""What is compared between SGLang's resolution and ours."""

USUAL: dict[str, Any] = {
    "chunked_prefill_size": 8192,
    "page_size": 1,
    "pp_size": 1,
    "schedule_conservativeness": 1.0,
    "tp_size": 1,
}
"""Values that nothing was said about, on these GPUs."""
