"""vLLM's flags as tables: types, bounds, what is set at every launch, and the entries of --speculative-config.

Read in the source of 0.32.0 (engine/arg_utils.py, config/speculative.py), and run there on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping

WITHOUT_MODEL = ("ngram", "ngram_gpu", "suffix", "extract_hidden_states")
OWN_HEADS = ("mtp", "dspark")
"""Methods that draft with layers of the target's own checkpoint unless a draft model is named."""

WITH_MODEL = ("eagle3", "eagle", "draft_model", "medusa", "mlp_speculator", "dflash", "custom_class")
METHODS = ("ngram", "eagle3", "eagle", "mtp", "draft_model", *sorted({*WITHOUT_MODEL, *OWN_HEADS, *WITH_MODEL}))

OWN_LENGTH = ("mtp", "dspark", "dflash", "suffix", "mlp_speculator", "medusa")
"""Methods whose draft, or whose own setting, can say how many tokens are drafted."""

METHOD, MODEL, TOKENS = "spec_method", "spec_model", "spec_tokens"
"""vLLM's own short flags for three entries of --speculative-config (0.32; older versions have the JSON alone)."""

ENTRIES: Mapping[str, str] = {METHOD: "method", MODEL: "model", TOKENS: "num_speculative_tokens"}
"""Flag to entry; any other entry is `spec_` and its name."""

WHOLE_ENTRIES = {
    TOKENS: (1, 1024),
    "spec_prompt_lookup_min": (1, 1024),
    "spec_prompt_lookup_max": (1, 1024),
    "spec_draft_tensor_parallel_size": (1, 1024),
    "spec_max_model_len": (1, 2**31 - 1),
    "spec_suffix_decoding_max_tree_depth": (1, 1024),
    "spec_suffix_decoding_max_cached_requests": (0, 2**31 - 1),
}
REAL_ENTRIES = {
    "spec_suffix_decoding_max_spec_factor": (0.0, 1e6),
    "spec_suffix_decoding_min_token_prob": (0.0, 1.0),
    "spec_synthetic_acceptance_length": (1.0, 1025.0),
}
BARE_ENTRIES = frozenset(
    {
        "spec_disable_padded_drafter_batch",
        "spec_disable_eagle_block_drop",
        "spec_enable_adaptive_verification",
        "spec_enforce_eager",
        "spec_index_share_for_mtp_iteration",
        "spec_parallel_drafting",
        "spec_use_heterogeneous_vocab",
        "spec_use_local_argmax_reduction",
    }
)
TEXT_ENTRIES = frozenset(
    {
        METHOD,
        MODEL,
        "spec_attention_backend",
        "spec_code_revision",
        "spec_kv_cache_dtype",
        "spec_moe_backend",
        "spec_quantization",
        "spec_revision",
    }
)
CHOICES: Mapping[str, frozenset[str]] = {
    "spec_rejection_sample_method": frozenset({"standard", "synthetic", "block"}),
    "spec_draft_sample_method": frozenset({"greedy", "probabilistic"}),
    "dtype": frozenset({"auto", "half", "float16", "bfloat16", "float", "float32"}),
}
KNOWN_ENTRIES = frozenset(
    {*WHOLE_ENTRIES, *REAL_ENTRIES, *BARE_ENTRIES, *TEXT_ENTRIES, *(n for n in CHOICES if n.startswith("spec_"))}
)

_ANY = 2**31 - 1
WHOLE = {
    **WHOLE_ENTRIES,
    "tensor_parallel_size": (1, 1024),
    "pipeline_parallel_size": (1, 1024),
    "data_parallel_size": (1, 1024),
    "max_model_len": (1, _ANY),
    "max_num_seqs": (1, 1_000_000),
    "max_num_batched_tokens": (1, _ANY),
    "block_size": (1, 4096),
    "num_gpu_blocks_override": (1, _ANY),
    "max_cudagraph_capture_size": (1, 1_000_000),
    "seed": (0, 2**32 - 1),
    "stream_interval": (1, 1_000_000),
}
REAL = {**REAL_ENTRIES, "gpu_memory_utilization": (0.0, 1.0), "cpu_offload_gb": (0.0, 1e6)}
BARE = frozenset(
    {
        *BARE_ENTRIES,
        "async_scheduling",
        "calculate_kv_scales",
        "disable_cascade_attn",
        "disable_custom_all_reduce",
        "enable_chunked_prefill",
        "enable_expert_parallel",
        "enable_prefix_caching",
        "enforce_eager",
        "language_model_only",
        "no_async_scheduling",
        "no_enable_chunked_prefill",
        "no_enable_prefix_caching",
        "trust_remote_code",
    }
)
TEXT = frozenset(
    {
        *TEXT_ENTRIES,
        "attention_backend",
        "compilation_config",
        "distributed_executor_backend",
        "hf_overrides",
        "kv_cache_dtype",
        "load_format",
        "moe_backend",
        "quantization",
        "revision",
        "tokenizer",
        "tokenizer_mode",
    }
)
LISTS = frozenset({"cudagraph_capture_sizes"})
"""Flags of several words; here one text with spaces between them."""

ON_BY_DEFAULT = frozenset({"async_scheduling", "enable_chunked_prefill", "enable_prefix_caching"})
"""On in 0.32 for an ordinary model unless their `--no-` form is given."""

DEFAULTS: Mapping[str, str | int] = {
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "data_parallel_size": 1,
    "spec_rejection_sample_method": "standard",
    "spec_draft_sample_method": "greedy",
}

GRAPH_FLAGS = ("cudagraph_capture_sizes", "max_cudagraph_capture_size")
"""Without any effect under enforce_eager."""

PLACED: Mapping[str, str] = {
    "config": "write its settings as engine.flags",
    "headless": "",
    "host": "host.address",
    "model": "model.path",
    "model_tag": "model.path",
    "port": "host.port_low",
    "served_model_name": "",
    "uds": "",
}
UNUSABLE: Mapping[str, str] = {
    "api_key": "requests carry no key; the server listens on the host's own loopback address",
    "disable_log_stats": "without it there are no counters of drafts",
    "speculative_config": (
        "is written by specsweep; give each of its entries a flag of its own: spec_method, spec_model, "
        "spec_tokens (num_speculative_tokens), and spec_ before the name of any other (spec_prompt_lookup_max)"
    ),
}
RENAMED: Mapping[str, str] = {
    "sc": "spec_method, spec_model, spec_tokens",
    "tp": "tensor_parallel_size",
    "tp_size": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "q": "quantization",
    "method": METHOD,
    "spec_num_speculative_tokens": TOKENS,
    "num_speculative_tokens": TOKENS,
    "num_spec_tokens": TOKENS,
    "prompt_lookup_max": "spec_prompt_lookup_max",
    "prompt_lookup_min": "spec_prompt_lookup_min",
    "draft_tensor_parallel_size": "spec_draft_tensor_parallel_size",
    "spec_tensor_parallel_size": "spec_draft_tensor_parallel_size",
    "speculative_method": METHOD,
    "speculative_model": MODEL,
}
"""Other spellings, and entries of --speculative-config without what marks them as such."""
