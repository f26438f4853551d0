"""SGLang's flags as tables: types, bounds, choices with their versions, defaults, other spellings.

Read from each version's own argument parser, 0.5.8 to 0.5.23. A flag that is not here may be used all the same:
the server's help on the host says whether it exists.
"""

from __future__ import annotations

from collections.abc import Mapping

Since = tuple[int, int, int]

_COUNT = 2**31 - 1

WHOLE: Mapping[str, tuple[int, int]] = {
    # Flag to its limits, both legal. No steps: NGRAM may fill that in, and speculative_adaptive allows it.
    "speculative_num_steps": (0, 64),
    "speculative_eagle_topk": (1, 64),
    "speculative_num_draft_tokens": (1, 1024),
    "speculative_dflash_block_size": (1, 1024),
    "speculative_dspark_block_size": (1, 1024),
    "speculative_domino_candidate_pool_size": (0, _COUNT),
    "speculative_draft_window_size": (1, _COUNT),
    "speculative_draft_sink_size": (0, _COUNT),
    "speculative_ngram_min_match_window_size": (1, 1024),
    "speculative_ngram_max_match_window_size": (1, 1024),
    "speculative_ngram_min_bfs_breadth": (1, 1024),
    "speculative_ngram_max_bfs_breadth": (1, 1024),
    "speculative_ngram_branch_length": (1, 1024),
    "speculative_ngram_max_trie_depth": (1, 1024),
    "speculative_ngram_capacity": (1, _COUNT),
    "speculative_ngram_external_sam_budget": (0, 1024),
    "speculative_ngram_external_corpus_max_tokens": (1, _COUNT),
    "max_running_requests": (1, 1_000_000),
    "max_queued_requests": (1, _COUNT),
    "max_total_tokens": (1, _COUNT),
    "max_prefill_tokens": (1, _COUNT),
    "context_length": (1, _COUNT),
    "chunked_prefill_size": (-1, _COUNT),
    "page_size": (1, 4096),
    "tp_size": (1, 4096),
    "pp_size": (1, 4096),
    "dp_size": (1, 4096),
    "ep_size": (1, 4096),
    "attn_dp_size": (1, 4096),
    "attn_cp_size": (1, 4096),
    "moe_dense_tp_size": (1, 4096),
    "cuda_graph_max_bs": (1, 100_000),
    "cuda_graph_max_bs_decode": (1, 100_000),
    "cuda_graph_max_bs_prefill": (1, _COUNT),
    "piecewise_cuda_graph_max_tokens": (1, _COUNT),
    "torch_compile_max_bs": (1, 100_000),
    "num_continuous_decode_steps": (1, _COUNT),
    "decode_log_interval": (1, _COUNT),
    "stream_interval": (1, _COUNT),
    "triton_attention_num_kv_splits": (1, 1024),
    "triton_attention_split_tile_size": (1, _COUNT),
    "base_gpu_id": (0, 4096),
    "gpu_id_step": (1, 4096),
    "nccl_port": (1, 65535),
    "random_seed": (-_COUNT, _COUNT),
    "tokenizer_worker_num": (1, 1024),
    "detokenizer_worker_num": (1, 1024),
    "cpu_offload_gb": (0, _COUNT),
    "max_loras_per_batch": (1, 100_000),
    "max_lora_rank": (1, 100_000),
}

REAL: Mapping[str, tuple[float, float]] = {
    # Flag to its limits. Of mem_fraction_static the limits themselves are not legal.
    "mem_fraction_static": (0.0, 1.0),
    "schedule_conservativeness": (0.0, 1e6),
    "speculative_accept_threshold_single": (0.0, 1.0),
    "speculative_accept_threshold_acc": (0.0, 1.0),
    "swa_full_tokens_ratio": (0.0, 1.0),
    "mamba_full_memory_ratio": (0.0, 1e6),
    "watchdog_timeout": (0.0, 1e9),
    "soft_watchdog_timeout": (0.0, 1e9),
    "tbo_token_distribution_threshold": (0.0, 1.0),
    "hicache_ratio": (0.0, 1e6),
}

BARE_PREFIXES = ("enable_", "disable_")
"""In every version all flags with these beginnings are bare ones."""

BARE = frozenset(
    {
        "skip_server_warmup",
        "sleep_on_idle",
        "speculative_adaptive",
        "speculative_dspark_align_verify_tokens_to_graph_tier",
        "speculative_skip_dp_mlp_sync",
        "speculative_use_block_verification",
        "speculative_use_rejection_sampling",
        "triton_attention_reduce_in_fp32",
        "trust_remote_code",
    }
)

TEXT = frozenset(
    {
        "speculative_algorithm",
        "speculative_adaptive_config",
        "speculative_draft_model_path",
        "speculative_draft_model_revision",
        "speculative_ngram_external_corpus_path",
        "speculative_token_map",
        "uno_lora_path",
    }
)

LISTS = frozenset(
    {"cuda_graph_bs", "cuda_graph_bs_decode", "cuda_graph_bs_prefill", "piecewise_cuda_graph_tokens"}
)
"""Flags that take several whole numbers: written as one value with spaces (`1 2 4 8`), passed on as words."""

LATER: Since = (999, 0, 0)
ALWAYS: tuple[Since, Since] = ((0, 0, 0), LATER)
"""From which version on, and the first one without it."""

ALGORITHMS: Mapping[str, Since] = {
    # Algorithm to the first version with it.
    "EAGLE": (0, 5, 8),
    "EAGLE3": (0, 5, 8),
    "NEXTN": (0, 5, 8),
    "STANDALONE": (0, 5, 8),
    "NGRAM": (0, 5, 8),
    "DFLASH": (0, 5, 11),
    "FROZEN_KV_MTP": (0, 5, 12),
    "DSPARK": (0, 5, 16),
    "UNO": (0, 5, 20),
}

BACKENDS: Mapping[str, tuple[Since, Since]] = {
    **dict.fromkeys(
        ("triton", "torch_native", "flex_attention", "fa3", "fa4", "flashinfer", "flashmla", "trtllm_mla"), ALWAYS
    ),
    **dict.fromkeys(("trtllm_mha", "nsa", "aiter", "wave", "intel_amx", "ascend", "intel_xpu"), ALWAYS),
    "cutlass_mla": ((0, 5, 8), (0, 5, 20)),
    "dual_chunk_flash_attn": ((0, 5, 8), (0, 5, 20)),
    "dsv4": ((0, 5, 12), LATER),
    "compressed": ((0, 5, 12), LATER),
    "tokenspeed_mla": ((0, 5, 12), LATER),
    "dsa": ((0, 5, 13), LATER),
    "cutedsl_mla": ((0, 5, 13), LATER),
    "hpc_ops": ((0, 5, 17), LATER),
    "minicpm_flashattn": ((0, 5, 19), LATER),
    "minicpm_flashinfer": ((0, 5, 19), LATER),
    "qsa": ((0, 5, 20), LATER),
    "llada2_cfg_flashinfer": ((0, 5, 22), LATER),
}

_MOE_RUNNERS: Mapping[str, tuple[Since, Since]] = {
    **dict.fromkeys(("auto", "deep_gemm", "triton", "triton_kernel", "flashinfer_trtllm", "cutlass"), ALWAYS),
    **dict.fromkeys(("flashinfer_cutlass", "flashinfer_mxfp4", "flashinfer_cutedsl"), ALWAYS),
    "flashinfer_trtllm_routed": ((0, 5, 10), LATER),
    "aiter": ((0, 5, 11), LATER),
    "marlin": ((0, 5, 12), LATER),
    "experimental_sgl_trtllm": ((0, 5, 13), LATER),
    "experimental_sgl_marlin": ((0, 5, 16), LATER),
    "humming": ((0, 5, 16), LATER),
    "hpc_ops": ((0, 5, 17), LATER),
    "megamoe": ((0, 5, 18), LATER),
    "intel_xpu": ((0, 5, 19), LATER),
    "flashinfer_megamoe": ((0, 5, 20), LATER),
    **dict.fromkeys(("lora_cutedsl", "lora_triton", "lora_marlin"), ((0, 5, 23), LATER)),
}

BACKEND_FLAGS = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")

CHOICES: Mapping[str, Mapping[str, tuple[Since, Since]]] = {
    # Flag to its values, each with the versions that have it. The draft's backend is free text to the parser.
    **dict.fromkeys((*BACKEND_FLAGS, "speculative_draft_attention_backend"), BACKENDS),
    "speculative_moe_runner_backend": _MOE_RUNNERS,
    "speculative_attention_mode": dict.fromkeys(("prefill", "decode"), ALWAYS),
    "speculative_ngram_match_type": dict.fromkeys(("BFS", "PROB"), ALWAYS),
    "dtype": dict.fromkeys(("auto", "half", "float16", "bfloat16", "float", "float32"), ALWAYS),
    "cuda_graph_backend_decode": {
        **dict.fromkeys(("full", "breakable", "disabled"), ALWAYS),
        "tc_piecewise": ((0, 0, 0), (0, 5, 22)),
    },
    "kv_cache_dtype": {
        **dict.fromkeys(("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16"), ALWAYS),
        "fp4_e2m1": ((0, 0, 0), (0, 5, 21)),
        **dict.fromkeys(("mxfp8", "nvfp4", "fp4_mx_block16"), ((0, 5, 16), LATER)),
    },
    "schedule_policy": {
        **dict.fromkeys(("lpm", "random", "fcfs", "dfs-weight", "lof", "priority", "routing-key"), ALWAYS),
        "hrrn": ((0, 5, 20), LATER),
        "shortest-prefill-first": ((0, 5, 21), LATER),
    },
}

DEFAULTS: Mapping[str, str | int | float] = {
    # Equal for all versions: a value that is spelt out means the same as none.
    "speculative_attention_mode": "prefill",
    "speculative_accept_threshold_single": 1.0,
    "speculative_accept_threshold_acc": 1.0,
    "speculative_draft_model_revision": "main",
    "speculative_ngram_min_bfs_breadth": 1,
    "speculative_ngram_max_bfs_breadth": 10,
    "speculative_ngram_match_type": "BFS",
    "speculative_ngram_max_trie_depth": 18,
    "speculative_ngram_capacity": 10_000_000,
    "speculative_ngram_external_sam_budget": 0,
    "pp_size": 1,
    "dp_size": 1,
    "attn_dp_size": 1,
    "kv_cache_dtype": "auto",
}

PLACED: Mapping[str, str] = {
    "model": "model.path",
    "model_path": "model.path",
    "served_model_name": "",
    "host": "",
    "port": "host.port_low and host.port_high",
    "nnodes": "host",
    "node_rank": "host",
    "dist_init_addr": "host",
    "nccl_init_addr": "host",
    "enable_metrics": "",
    "config": "",
    "help": "",
    "version": "",
}
"""Flags that a launch sets itself, and where their value comes from when a person has a say in it."""

RENAMED: Mapping[str, str] = {
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "ep": "ep_size",
    "expert_parallel_size": "ep_size",
    "attention_data_parallel_size": "attn_dp_size",
    "attention_context_parallel_size": "attn_cp_size",
    "decode_context_parallel_size": "dcp_size",
    "moe_data_parallel_size": "moe_dp_size",
    "speculative_draft_model": "speculative_draft_model_path",
    "speculative_dflash_draft_window_size": "speculative_draft_window_size",
    "fp4_gemm_backend": "fp4_gemm_runner_backend",
    "fp8_gemm_backend": "fp8_gemm_runner_backend",
    "enable_hicache": "enable_hierarchical_cache",
    "stream_output": "incremental_streaming_output",
}
"""Other spellings of flags. One each is legal, that of /server_info, so that equal things are equal."""
