"""The combinations that every version is asked about: systematic products, the same for all versions.

    python -m tests.sglang_oracle.combinations GPU > combinations.json

A model or draft of models.py is written as {NAME}.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator

from tests.sglang_oracle.combination import (
    ALGORITHMS,
    BACKENDS,
    BASE,
    CHAIN,
    TREE,
    Combination,
    FlagValue,
    fingerprint,
    product,
    speculation,
)
from tests.sglang_oracle.models import GPUS


def numbers() -> Iterator[Combination]:
    """Steps, branches and draft tokens, under each algorithm with three numbers."""
    wide = product(
        speculative_num_steps=[None, 1, 3, 5],
        speculative_eagle_topk=[None, 1, 2, 4],
        speculative_num_draft_tokens=[None, 2, 4, 8, 16],
    )
    for one in wide:
        yield Combination("sm120", "llama", {**BASE, **speculation("EAGLE3", one)})
    for algorithm, model in itertools.product(("EAGLE", "NEXTN", "STANDALONE"), ("llama", "qwen")):
        for one in product(
            speculative_num_steps=[None, 3],
            speculative_eagle_topk=[None, 1, 4],
            speculative_num_draft_tokens=[None, 8],
        ):
            yield Combination("sm120", model, {**BASE, **speculation(algorithm, one)})
    for algorithm in ("EAGLE", "EAGLE3"):
        for one in product(speculative_num_steps=[None, 2], speculative_eagle_topk=[None, 1]):
            yield Combination("sm120", "deepseek", {**BASE, "speculative_algorithm": algorithm, **one})


def backends() -> Iterator[Combination]:
    """Attention backends, page sizes and branches, on each kind of GPU, MLA or not."""
    for gpu, model, numbers_, algorithm in itertools.product(
        GPUS, ("llama", "deepseek"), (CHAIN, TREE), ("EAGLE3", "")
    ):
        pages = [None, 16, 64] if gpu == "sm120" else [None, 32]
        if not algorithm and numbers_ is TREE:
            continue
        draft: dict[str, FlagValue] = {"speculative_draft_attention_backend": "triton"} if algorithm else {}
        for one in product(attention_backend=BACKENDS, page_size=pages):
            flags = {**BASE, **speculation(algorithm, numbers_, model), **draft, **one}
            yield Combination(gpu, model, flags)
        unset = {name: value for name, value in BASE.items() if name != "attention_backend"}
        for one in product(page_size=[None, 16]):
            yield Combination(gpu, model, {**unset, **speculation(algorithm, numbers_, model), **draft, **one})


def split_backends() -> Iterator[Combination]:
    """Prefill and decode on backends of their own."""
    for gpu, numbers_ in itertools.product(("sm90", "sm100", "sm120"), (CHAIN, TREE)):
        for one in product(
            prefill_attention_backend=[None, "triton", "fa4", "trtllm_mha", "flashinfer"],
            decode_attention_backend=["triton", "trtllm_mha", "flashmla", "flashinfer"],
            page_size=[None, 64],
        ):
            draft = {"speculative_draft_attention_backend": "triton"}
            yield Combination(gpu, "llama", {**BASE, **speculation("EAGLE3", numbers_), **draft, **one})


def schedule() -> Iterator[Combination]:
    """The second worker, the overlapping schedule, limits and mixed chunks, under each algorithm."""
    for value, overlap, algorithm in itertools.product(("", "0", "1", "true"), (None, True), ALGORITHMS):
        env = {"SGLANG_ENABLE_SPEC_V2": value} if value else {}
        more = {"disable_overlap_schedule": True} if overlap else {}
        yield Combination("sm120", "llama", {**BASE, **speculation(algorithm), **more}, env)
        if algorithm in ("EAGLE3", "STANDALONE"):
            yield Combination("sm120", "llama", {**BASE, **speculation(algorithm, TREE), **more}, env)
    for algorithm in ALGORITHMS:
        without = {name: value for name, value in BASE.items() if name != "max_running_requests"}
        yield Combination("sm120", "llama", {**without, **speculation(algorithm)})
        for one in product(enable_mixed_chunk=[True], disable_overlap_schedule=[None, True]):
            yield Combination("sm120", "llama", {**BASE, **speculation(algorithm), **one})


def parallel() -> Iterator[Combination]:
    """Pipeline stages and data-parallel attention, with chunks and pages."""
    for algorithm, env in itertools.product(ALGORITHMS, ({}, {"SGLANG_ENABLE_PP_SPEC": "1"})):
        for one in product(pp_size=[2], enable_mixed_chunk=[None, True], disable_overlap_schedule=[None, True]):
            yield Combination("sm120", "llama", {**BASE, **speculation(algorithm), **one}, env)
    for algorithm in ALGORITHMS:
        for one in product(dp_size=[1, 2, 3], enable_dp_lm_head=[None, True], chunked_prefill_size=[None, 4096]):
            flags = {**BASE, "tp_size": 8, "enable_dp_attention": True, **one}
            flags |= speculation(algorithm, model="deepseek")
            yield Combination("sm120", "deepseek", flags)
    for one in product(
        page_size=[1, 48, 64, 96], chunked_prefill_size=[None, -1, 2048, 4800, 6144], tp_size=[None, 8]
    ):
        yield Combination("sm120", "llama", {**BASE, **speculation("EAGLE3"), **one})


def other_algorithms() -> Iterator[Combination]:
    """NGRAM's search and DFLASH's block."""
    for one in product(
        speculative_ngram_max_bfs_breadth=[None, 1, 4],
        speculative_num_draft_tokens=[None, 6],
        speculative_num_steps=[None, 2],
        page_size=[None, 16],
        attention_backend=["triton", "flashinfer"],
    ):
        yield Combination("sm120", "llama", {**BASE, "speculative_algorithm": "NGRAM", **one})
    branch: dict[str, FlagValue] = {"speculative_algorithm": "NGRAM", "speculative_ngram_branch_length": 18}
    yield Combination("sm120", "llama", {**BASE, **branch})
    for one in product(speculative_eagle_topk=[2], speculative_draft_model_path=[None, "{eagle3}"]):
        yield Combination("sm120", "llama", {**BASE, "speculative_algorithm": "NGRAM", **one})
    for one in product(
        speculative_ngram_external_corpus_path=["{corpus}"],
        speculative_ngram_external_sam_budget=[None, 4, 11, 12],
    ):
        yield Combination("sm120", "llama", {**BASE, "speculative_algorithm": "NGRAM", **one})
    for one in product(
        speculative_draft_model_path=[None, "{eagle3}", "{block}"],
        speculative_num_draft_tokens=[None, 8, 16],
        speculative_dflash_block_size=[None, 8],
        speculative_num_steps=[None, 3],
        speculative_draft_window_size=[None, 4, 64],
    ):
        yield Combination("sm120", "llama", {**BASE, "speculative_algorithm": "DFLASH", **one})


def adaptive() -> Iterator[Combination]:
    """Numbers that adapt."""
    for algorithm in ("EAGLE3", "STANDALONE", "NGRAM"):
        for one in product(
            speculative_adaptive=[True],
            speculative_num_steps=[None, 1, 2, 3, 5, 7],
            speculative_eagle_topk=[None, 1, 4],
            speculative_num_draft_tokens=[None, 8],
        ):
            if algorithm == "EAGLE3" or "speculative_num_draft_tokens" not in one:
                yield Combination("sm120", "llama", {**BASE, **speculation(algorithm, one)})


def verification() -> Iterator[Combination]:
    """Rejection sampling and block verification."""
    for name in ("speculative_use_rejection_sampling", "speculative_use_block_verification"):
        for algorithm, numbers_ in itertools.product(
            ("EAGLE3", "EAGLE", "STANDALONE", "NGRAM", "DFLASH"), (CHAIN, TREE)
        ):
            for one in (
                {},
                {"speculative_accept_threshold_single": 0.5},
                {"speculative_accept_threshold_acc": 0.5},
                {"enable_multi_layer_eagle": True},
                {"enable_deterministic_inference": True},
            ):
                flags = speculation(algorithm, numbers_ if algorithm not in ("NGRAM", "DFLASH") else None)
                yield Combination("sm120", "llama", {**BASE, **flags, name: True, **one})


def options() -> Iterator[Combination]:
    """The rest, one at a time."""
    lora: dict[str, FlagValue] = {"enable_lora": True, "max_lora_rank": 16, "lora_target_modules": "all"}
    for algorithm in ALGORITHMS:
        yield Combination("sm120", "llama", {**BASE, **speculation(algorithm), **lora})
        for one in (
            {"speculative_moe_runner_backend": "flashinfer_trtllm"},
            {"speculative_moe_runner_backend": "flashinfer_trtllm_routed"},
            {"speculative_moe_runner_backend": "triton"},
            {"speculative_draft_window_size": 64, "speculative_draft_sink_size": 4},
            {"speculative_draft_sink_size": 4},
            {"speculative_skip_dp_mlp_sync": True},
            {"speculative_attention_mode": "decode"},
            {"speculative_token_map": "/map.pt"},
            {"speculative_draft_model_revision": "abc"},
            {"speculative_adaptive": True, **lora},
        ):
            if algorithm:
                yield Combination("sm120", "llama", {**BASE, **speculation(algorithm), **one})
        for more in (
            {"disable_cuda_graph_padding": True, "enable_torch_compile": True},
            {"disable_custom_all_reduce": True, "tp_size": 8},
            {"num_continuous_decode_steps": 4},
            {"context_length": 131072},
            {"context_length": 131073},
            {"kv_cache_dtype": "fp8_e5m2", "attention_backend": "fa3"},
            {"cuda_graph_max_bs": 8},
            {"cuda_graph_max_bs_decode": 8},
        ):
            gpu = "sm90" if "kv_cache_dtype" in more else "sm120"
            yield Combination(gpu, "llama", {**BASE, **speculation(algorithm), **more})


def contexts_and_caches() -> Iterator[Combination]:
    """A longer context by force, and types of the KV cache."""
    yield Combination(
        "sm120",
        "llama",
        {**BASE, "context_length": 131073},
        {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
    )
    for dtype, backend in itertools.product(
        ("auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"), ("trtllm_mla", "cutedsl_mla")
    ):
        yield Combination("sm100", "deepseek", {**BASE, "attention_backend": backend, "kv_cache_dtype": dtype})


def combinations() -> tuple[Combination, ...]:
    """All of them, each once, in an order that stays."""
    groups = (
        *(numbers, backends, split_backends, schedule, parallel),
        *(other_algorithms, adaptive, verification, options, contexts_and_caches),
    )
    found = {fingerprint([one]): one for group in groups for one in group()}
    return tuple(found.values())


if __name__ == "__main__":
    asked = [one for one in combinations() if one.gpu == sys.argv[1]]
    json.dump([{"model": one.model, "argv": one.argv(), "env": dict(one.env)} for one in asked], sys.stdout)
