"""Every rule of SGLang, one by one: what breaks it, what next to it does not, and in which versions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from sweeper.engines.base import HostFacts
from sweeper.engines.sglang_rules import Rule
from sweeper.engines.sglang_spec import ALL_RULES, resolved_case, rule_violations
from sweeper.spec import FlagValue, ServerConfig
from tests.engines.sglang_cases import (
    A100,
    B200,
    BASE,
    CHAIN,
    DEEPSEEK,
    EAGLE,
    EAGLE3,
    H200,
    KIMI,
    KIMI_EAGLE3,
    KIMI_MLA_EAGLE3,
    LLAMA,
    TREE,
    host,
    with_flags,
)

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


ROWS = [
    Row("algorithm_exists", "DFLASH", {**DFLASH}, {"speculative_algorithm": None}, version=OLD),
    Row("algorithm_exists", "DSPARK", {**DSPARK}, {"speculative_algorithm": None}),
    # E1, E2, E3
    Row(
        "numbers_are_complete",
        "steps is missing",
        {**CHAIN, "speculative_num_steps": None},
        {"speculative_num_steps": 3},
    ),
    Row(
        "numbers_are_complete",
        "topk is missing",
        {**CHAIN, "speculative_eagle_topk": None},
        {"speculative_eagle_topk": 1},
    ),
    Row(
        "numbers_are_complete",
        "tokens is missing",
        {**TREE, "speculative_num_draft_tokens": None},
        {"speculative_num_draft_tokens": 8},
    ),
    Row(
        "steps_exist",
        "nothing would be drafted",
        {**CHAIN, "speculative_num_steps": 0},
        {"speculative_num_steps": 1},
    ),
    # 1.5
    Row(
        "tree_is_large_enough",
        "has use for 13",
        {**TREE, "speculative_num_draft_tokens": 14},
        {"speculative_num_draft_tokens": 13},
    ),
    Row(
        "depth_is_used", "need 4", {**TREE, "speculative_num_draft_tokens": 3}, {"speculative_num_draft_tokens": 4}
    ),
    # E18
    Row(
        "draft_is_named",
        "EAGLE3 needs",
        {**CHAIN, "speculative_draft_model_path": None},
        {"speculative_draft_model_path": "/draft"},
    ),
    Row(
        "draft_is_named",
        "EAGLE3 needs",
        {**CHAIN, "speculative_draft_model_path": "/model"},
        {"speculative_draft_model_path": "/draft"},
    ),
    Row(
        "draft_is_named",
        "LlamaForCausalLM carries no draft layer",
        {**CHAIN, "speculative_algorithm": "EAGLE", "speculative_draft_model_path": None},
        {"speculative_draft_model_path": "/draft"},
    ),
    Row(
        "draft_is_named",
        "DFLASH needs",
        {**DFLASH, "speculative_draft_model_path": None},
        {"speculative_draft_model_path": "/draft"},
    ),
    Row(
        "own_draft_layer_exists",
        "num_nextn_predict_layers 0",
        {**CHAIN, "speculative_algorithm": "EAGLE", "speculative_draft_model_path": None},
        {"speculative_algorithm": None},
        target={**DEEPSEEK, "num_nextn_predict_layers": 0},
    ),
    # E12, E15, E16, E17
    Row(
        "spec_v2_is_a_chain",
        "only topk 1",
        {**TREE},
        {"speculative_eagle_topk": 1},
        version=OLD,
        env={"SGLANG_ENABLE_SPEC_V2": "1"},
    ),
    Row("no_pipeline", "pp_size 2", {**CHAIN, "pp_size": 2}, {"pp_size": 1}),
    Row(
        "no_pipeline",
        "only plain EAGLE",
        {**CHAIN, "pp_size": 2},
        {"pp_size": 1},
        version=NEW,
        env={"SGLANG_ENABLE_PP_SPEC": "1"},
    ),
    Row(
        "no_mixed_pipeline",
        "pp_size",
        {**BASE, "pp_size": 2, "enable_mixed_chunk": True},
        {"enable_mixed_chunk": None},
        version=OLD,
    ),
    Row(
        "no_data_parallel_attention",
        "NGRAM",
        {**NGRAM, "tp_size": 8, "dp_size": 2, "enable_dp_attention": True},
        {"enable_dp_attention": None},
    ),
    Row(
        "no_data_parallel_attention",
        "enable_dp_lm_head",
        {**DFLASH, "tp_size": 8, "dp_size": 2, "enable_dp_attention": True},
        {"enable_dp_lm_head": True},
        version=NEW,
    ),
    Row("no_lora", "NGRAM only", {**CHAIN, "enable_lora": True}, {"enable_lora": None}),
    Row(
        "no_lora",
        "speculative_adaptive",
        {**ADAPTIVE, "enable_lora": True},
        {"speculative_adaptive": None},
        version=NEW,
    ),
    Row(
        "draft_moe_runner",
        "refuses it for a draft",
        {**CHAIN, "speculative_moe_runner_backend": "flashinfer_trtllm"},
        {"speculative_moe_runner_backend": "triton"},
        version=OLD,
    ),
    # E20, E21, E22
    Row(
        "rejection_sampling",
        "topk 1",
        {**TREE, "speculative_use_rejection_sampling": True},
        {"speculative_eagle_topk": 1},
        draft={**EAGLE3, "draft_vocab_size": 128256},
    ),
    Row(
        "rejection_sampling",
        "accept thresholds",
        {**CHAIN, "speculative_use_rejection_sampling": True, "speculative_accept_threshold_acc": 0.9},
        {"speculative_accept_threshold_acc": 1.0},
        draft={**EAGLE3, "draft_vocab_size": 128256},
    ),
    Row(
        "rejection_sampling",
        "vocabulary of 32000",
        {**CHAIN, "speculative_use_rejection_sampling": True},
        {"speculative_use_rejection_sampling": None},
    ),
    Row(
        "block_verification",
        "not with NGRAM",
        {**NGRAM, "speculative_use_block_verification": True},
        {"speculative_use_block_verification": None},
        version=NEW,
    ),
    Row("adaptive_start", "0, 1, 3, 7", {**ADAPTIVE, "speculative_num_steps": 5}, {"speculative_num_steps": 3}),
    Row(
        "adaptive_start",
        "0, 1, 3, 5, 7",
        {**ADAPTIVE, "speculative_num_steps": 4},
        {"speculative_num_steps": 5},
        version=NEW,
    ),
    Row(
        "skips_sync",
        "EAGLE only",
        {**CHAIN, "speculative_skip_dp_mlp_sync": True},
        {"speculative_skip_dp_mlp_sync": None},
    ),
    Row(
        "draft_window",
        "needs speculative_draft_window_size",
        {**CHAIN, "speculative_draft_sink_size": 4},
        {"speculative_draft_window_size": 64},
        version=NEW,
    ),
    Row(
        "draft_window",
        "at least its block, 16",
        {**DFLASH, "speculative_draft_window_size": 8, "speculative_num_draft_tokens": 16},
        {"speculative_draft_window_size": 16},
    ),
    Row(
        "block_is_consistent",
        "makes it 8",
        {**DFLASH, "speculative_dflash_block_size": 8, "speculative_num_draft_tokens": 16},
        {"speculative_num_draft_tokens": 8},
    ),
    Row(
        "block_is_consistent",
        "makes it 8",
        {**DSPARK, "speculative_dspark_block_size": 7, "speculative_num_draft_tokens": 7},
        {"speculative_num_draft_tokens": 8},
        version=NEW,
    ),
    Row(
        "ngram_corpus",
        "from 1 to 11",
        {**NGRAM, "speculative_ngram_external_corpus_path": "/c", "speculative_ngram_external_sam_budget": 12},
        {"speculative_ngram_external_sam_budget": 11},
    ),
    Row("uno_is_alone", "one GPU", {**UNO, "tp_size": 2}, {"tp_size": 1}, version=NEW),
    Row("uno_is_alone", "uno_lora_path", {**UNO, "uno_lora_path": None}, {"uno_lora_path": "/lora"}, version=NEW),
    Row(
        "uno_is_alone",
        "<= 128",
        {**UNO, "speculative_eagle_topk": 4, "speculative_num_steps": 9},
        {"speculative_num_steps": 4},
        version=NEW,
    ),
    # E6, E7, E8, E8b, E9, E10, E11
    Row(
        "choices_of_this_version",
        "cutlass_mla",
        {**BASE, "attention_backend": "cutlass_mla"},
        {"attention_backend": "triton"},
        version=NEW,
    ),
    Row("choices_of_this_version", "hrrn", {**BASE, "schedule_policy": "hrrn"}, {"schedule_policy": "lpm"}),
    Row("page_of_a_tree", "not triton", {**TREE, "page_size": 16}, {"page_size": 1}, version=OLD),
    Row(
        "page_of_a_tree",
        "not fa4",
        {**TREE, "page_size": 16, "attention_backend": "fa4"},
        {"attention_backend": "triton"},
    ),
    Row(
        "page_of_a_tree",
        "only on flashinfer",
        {**NGRAM, "page_size": 16},
        {"speculative_ngram_max_bfs_breadth": 1},
    ),
    Row(
        "trtllm_mha_is_a_chain",
        "topk 1 only",
        {**TREE, "decode_attention_backend": "trtllm_mha", "page_size": 64},
        {"speculative_eagle_topk": 1},
    ),
    on_kimi(
        "draft_backend_is_a_chain",
        "flashinfer drafts with topk 1",
        {**KIMI_TREE, "speculative_draft_attention_backend": "flashinfer"},
        {"speculative_draft_attention_backend": "triton"},
        draft=KIMI_MLA_EAGLE3,
    ),
    on_kimi(
        "tree_is_verified_as_a_tree",
        "causal mask",
        {**KIMI_TREE, "attention_backend": "flashinfer"},
        {"attention_backend": "triton"},
    ),
    on_kimi(
        "tree_is_verified_as_a_tree",
        "causal mask",
        {
            **KIMI_TREE,
            "attention_backend": "flashinfer",
            "speculative_num_steps": 1,
            "speculative_num_draft_tokens": 4,
        },
        {"speculative_eagle_topk": 1},
    ),
    on_kimi(
        "tree_is_verified_as_a_tree",
        "causal mask",
        {**KIMI_TREE, "decode_attention_backend": "flashinfer", "speculative_attention_mode": "decode"},
        {"speculative_attention_mode": "prefill"},
    ),
    on_kimi(
        "tree_is_verified_as_a_tree",
        "causal mask",
        {**NGRAM, "attention_backend": "flashinfer"},
        {"speculative_ngram_max_bfs_breadth": 1},
    ),
    Row(
        "draft_backend_exists",
        "torch_native cannot draft",
        {**CHAIN, "attention_backend": "torch_native", "speculative_draft_attention_backend": None},
        {"speculative_draft_attention_backend": "triton"},
    ),
    Row(
        "draft_backend_exists",
        "fa4 cannot draft",
        {**CHAIN, "speculative_draft_attention_backend": "fa4"},
        {"speculative_draft_attention_backend": "fa3"},
        version="0.5.9",
    ),
    on_kimi(
        "draft_backend_fits_the_draft",
        "the draft is none",
        {**CHAIN, "attention_backend": "trtllm_mla", "speculative_draft_attention_backend": None},
        {"speculative_draft_attention_backend": "triton"},
        gpu=B200,
    ),
    Row(
        "backend_fits_the_target",
        "the target is none",
        {**BASE, "attention_backend": "flashmla"},
        {"attention_backend": "fa3"},
    ),
    on_kimi(
        "backend_fits_the_target",
        "the target is one",
        {**BASE, "attention_backend": "trtllm_mha"},
        {"attention_backend": "trtllm_mla"},
        gpu=B200,
    ),
    Row(
        "no_speculation_there",
        "flex_attention",
        {**CHAIN, "attention_backend": "flex_attention"},
        {"attention_backend": "triton"},
    ),
    Row(
        "no_speculation_there",
        "hpc_ops",
        {**CHAIN, "attention_backend": "hpc_ops"},
        {"attention_backend": "triton"},
        version=NEW,
    ),
    Row(
        "tree_backend_is_pinned",
        "attention_backend is missing",
        {**TREE, "attention_backend": None},
        {"attention_backend": "triton"},
    ),
    # GPUs, pages, contexts, graphs
    Row(
        "gpu_can",
        "fa3",
        {**BASE, "attention_backend": "fa3"},
        {"attention_backend": "triton"},
        gpu="NVIDIA RTX PRO 6000 Blackwell",
    ),
    Row(
        "gpu_can",
        "trtllm_mha",
        {**BASE, "attention_backend": "trtllm_mha"},
        {"attention_backend": "triton"},
        gpu=H200,
    ),
    on_kimi(
        "gpu_can",
        "MLA models on sm80",
        {**BASE, "attention_backend": "fa3"},
        {"attention_backend": "triton"},
        gpu=A100,
    ),
    on_kimi("gpu_can", "trtllm_mla", {**BASE, "attention_backend": "trtllm_mla"}, {"attention_backend": "triton"}),
    on_kimi(
        "mla_cache_type",
        "fp8_e5m2",
        {**BASE, "attention_backend": "trtllm_mla", "kv_cache_dtype": "fp8_e5m2"},
        {"kv_cache_dtype": "fp8_e4m3"},
        gpu=B200,
    ),
    Row(
        "page_divides_the_chunk",
        "pages of 64",
        {**BASE, "page_size": 64, "chunked_prefill_size": 2080},
        {"chunked_prefill_size": 2048},
    ),
    Row("page_divides_the_chunk", "a power of 2", {**BASE, "page_size": 48}, {"page_size": 64}),
    Row(
        "groups_divide",
        "3 groups",
        {**BASE, "tp_size": 8, "dp_size": 3, "enable_dp_attention": True},
        {"dp_size": 2},
    ),
    Row("context_fits", "the model has 131072", {**BASE, "context_length": 131073}, {"context_length": 131072}),
    Row(
        "graphs_are_padded",
        "enable_torch_compile",
        {**BASE, "disable_cuda_graph_padding": True, "enable_torch_compile": True},
        {"enable_torch_compile": None},
    ),
    # 6, E25: the draft
    Row("target_can_be_read", "is not JSON", {**BASE}, {}, target={}),
    Row(
        "draft_can_be_read",
        "does not exist",
        {**CHAIN, "speculative_draft_model_path": "/gone"},
        {"speculative_draft_model_path": "/draft"},
    ),
    on_kimi("architecture_is_served", "from 0.5.9 on", {**BASE}, {}, version="0.5.8"),
    on_kimi(
        "architecture_is_served",
        "from 0.5.12 on",
        {**CHAIN},
        {"speculative_algorithm": None},
        version=OLD,
        draft=KIMI_MLA_EAGLE3,
    ),
    Row(
        "algorithm_fits_the_draft",
        "it needs EAGLE3",
        {**CHAIN, "speculative_algorithm": "EAGLE"},
        {"speculative_algorithm": "EAGLE3"},
    ),
    Row(
        "algorithm_fits_the_draft",
        "is no EAGLE3 draft",
        {**CHAIN},
        {"speculative_algorithm": "EAGLE"},
        draft=EAGLE,
    ),
    on_kimi(
        "hidden_sizes_fit",
        "expects 12288",
        {**CHAIN},
        {"speculative_algorithm": None},
        draft={**KIMI_EAGLE3, "hidden_size": 4096},
    ),
    Row(
        "vocabularies_fit",
        "129280",
        {**CHAIN},
        {"speculative_algorithm": None},
        draft={**EAGLE3, "vocab_size": 129280},
    ),
    Row(
        "draft_is_one_layer",
        "has 2 layers",
        {**CHAIN},
        {"speculative_algorithm": None},
        version=OLD,
        draft={**EAGLE3, "num_hidden_layers": 2},
    ),
    Row(
        "draft_context_fits",
        "made for 2048",
        {**CHAIN, "context_length": 4096},
        {"context_length": 2048},
        draft={**EAGLE3, "max_position_embeddings": 2048},
    ),
]
IDS = [f"{row.rule}-{row.version}-{index}" for index, row in enumerate(ROWS)]
BY_NAME: dict[str, Rule] = {rule.__name__: rule for rule in ALL_RULES}


def facts_of(row: Row) -> HostFacts:
    """The row's host; of a target that cannot be read, and of a draft that is not there, as such."""
    facts = row.facts
    files = {**facts.files, "/gone/config.json": None}
    if not row.target:
        files["/model/config.json"] = "{"
    return HostFacts(facts.engine_version, facts.model_path, files=files, gpu_names=facts.gpu_names)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_rule_is_broken_and_says_why(row: Row) -> None:
    line = BY_NAME[row.rule](resolved_case(row.config(), facts_of(row)))
    assert row.words in line
    assert line in rule_violations(row.config(), facts_of(row))


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.mended], ids=[i for i, r in zip(IDS, ROWS, strict=True) if r.mended]
)
def test_rule_is_kept_right_beside_that(row: Row) -> None:
    assert BY_NAME[row.rule](resolved_case(row.config(**row.mended), facts_of(row))) == ""


def test_every_rule_has_a_row() -> None:
    assert {row.rule for row in ROWS} == set(BY_NAME)
    assert len(BY_NAME) == len(ALL_RULES)


@pytest.mark.parametrize(
    "version", ["0.5.8", "0.5.9", OLD, "0.5.11", "0.5.12", "0.5.13", "0.5.14", MIDDLE, "0.5.20", NEW, "0.7.0"]
)
def test_chain_tree_and_baseline_are_legal_in_every_version(version: str) -> None:
    for flags in (BASE, CHAIN, TREE, NGRAM):
        assert rule_violations(ServerConfig(flags=flags), host(version)) == []


@pytest.mark.parametrize(
    ("version", "legal"), [(OLD, False), ("0.5.12", False), ("0.5.13", True), (MIDDLE, True), (NEW, True)]
)
def test_triton_pages_a_tree_from_0_5_13_on(version: str, legal: bool) -> None:
    config = with_flags(TREE, page_size=16)
    assert (rule_violations(config, host(version)) == []) is legal


@pytest.mark.parametrize("version", [OLD, "0.5.12", "0.5.13", MIDDLE, NEW])
def test_wrong_mask_is_forbidden_in_every_version(version: str) -> None:
    config = with_flags(KIMI_TREE, attention_backend="flashinfer")
    (line,) = rule_violations(config, host(version, KIMI, KIMI_EAGLE3))
    assert "causal mask" in line


def test_flag_that_the_hosts_help_does_not_list_is_refused() -> None:
    facts = host()
    known = HostFacts(facts.engine_version, facts.model_path, files=facts.files, known_flags=frozenset(CHAIN))
    assert rule_violations(with_flags(CHAIN, something_new=1), known) == [
        "something_new: is not a flag of this version of SGLang"
    ]
    assert rule_violations(with_flags(CHAIN), known) == []


def test_longer_context_may_be_forced() -> None:
    config = ServerConfig(
        flags=with_flags(CHAIN, context_length=4096).flags, env={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
    )
    assert rule_violations(config, host(draft={**EAGLE3, "max_position_embeddings": 2048})) == []


def test_wrong_single_value_is_a_violation_too() -> None:
    assert "whole number" in rule_violations(with_flags(CHAIN, speculative_num_steps="x"), host())[0]
    fake = ServerConfig(flags=CHAIN, env={"SGLANG_SIMULATE_ACC_LEN": "3"})
    assert "pretend" in rule_violations(fake, host())[0]


def test_unreadable_target_is_told_and_never_raises() -> None:
    facts = HostFacts(MIDDLE, "/model", files={"/model/config.json": json.dumps([1])})
    assert "is not a JSON object" in rule_violations(with_flags(CHAIN), facts)[0]
