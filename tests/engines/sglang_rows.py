"""What breaks each rule on speculation of SGLang, and what right beside it does not."""

from __future__ import annotations

from tests.engines.sglang_cases import BASE, CHAIN, DEEPSEEK, DEEPSEEK_V4, EAGLE3, LLAMA, TREE
from tests.engines.sglang_row import ADAPTIVE, DFLASH, DSPARK, NEW, NGRAM, OLD, UNO, Row

SPECULATION_ROWS = [
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
    Row(
        "deepseek_v4_speculates",
        "with EAGLE only",
        {**NGRAM, "attention_backend": "triton"},
        {"speculative_algorithm": None},
        target=DEEPSEEK_V4,
    ),
    Row(
        "deepseek_v4_speculates",
        "with EAGLE and DSPARK only",
        {**CHAIN, "speculative_algorithm": "STANDALONE"},
        {"speculative_algorithm": "EAGLE"},
        version=NEW,
        target=DEEPSEEK_V4,
        draft=LLAMA,
    ),
    Row(
        "deepseek_v4_speculates",
        "topk 1 only",
        {**TREE, "speculative_algorithm": "EAGLE", "speculative_draft_model_path": None},
        {"speculative_eagle_topk": 1},
        version=NEW,
        target=DEEPSEEK_V4,
    ),
]
