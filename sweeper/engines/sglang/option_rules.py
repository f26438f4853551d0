"""Rules on single options of speculation, in the form of rules.py; listed in OPTION_RULES."""

from __future__ import annotations

from sweeper.engines.sglang.canonical import adaptive_steps
from sweeper.engines.sglang.case import EAGLE_FAMILY, Case
from sweeper.engines.sglang.rules import Rule


def draft_moe_runner(case: Case) -> str:
    """E19: flashinfer_trtllm as the draft's MoE runner: an assertion up to 0.5.11. Run."""
    if case.text("speculative_moe_runner_backend") != "flashinfer_trtllm" or case.version.since(0, 5, 12):
        return ""
    return "speculative_moe_runner_backend flashinfer_trtllm: this version refuses it for a draft"


def rejection_sampling(case: Case) -> str:
    """E20: rejection sampling is for EAGLE and EAGLE3 in a chain, without thresholds. Run (0.5.14 and later)."""
    if not case.on("speculative_use_rejection_sampling") or case.algorithm not in EAGLE_FAMILY:
        return ""
    name = "speculative_use_rejection_sampling"
    if case.algorithm == "STANDALONE":
        return f"{name}: EAGLE and EAGLE3 only"
    if case.number("speculative_eagle_topk") != 1:
        return f"{name}: needs speculative_eagle_topk 1"
    if "speculative_accept_threshold_single" in case.flags or "speculative_accept_threshold_acc" in case.flags:
        return f"{name}: not with accept thresholds below 1"
    if case.on("enable_deterministic_inference") and not case.version.since(0, 5, 23):
        return f"{name}: not with enable_deterministic_inference up to 0.5.22"
    if case.on("enable_multi_layer_eagle") and not case.version.since(0, 5, 16):
        return f"{name}: not with enable_multi_layer_eagle up to 0.5.15"
    draft = case.draft
    if draft is not None and draft.draft_vocab_size not in (None, draft.vocab_size):
        return f"{name}: the draft's own vocabulary of {draft.draft_vocab_size} tokens cannot be used with it"
    return ""


def block_verification(case: Case) -> str:
    """E21: block verification, 0.5.22 and later: EAGLE, EAGLE3, DFLASH, DSPARK. Run."""
    if not case.on("speculative_use_block_verification") or not case.algorithm:
        return ""
    if case.algorithm in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK"):
        return ""
    return f"speculative_use_block_verification: not with {case.algorithm}"


def adaptive_start(case: Case) -> str:
    """E22: adaptive speculation starts at one of its own steps. Run (0.5.13 and later)."""
    if not case.on("speculative_adaptive") or not case.version.since(0, 5, 13):
        return ""
    candidates, steps = adaptive_steps(case), case.number("speculative_num_steps")
    if not candidates or steps is None or steps in candidates:
        return ""
    return (
        f"speculative_num_steps {steps}: speculative_adaptive starts at one of {', '.join(map(str, candidates))}"
    )


def skips_sync(case: Case) -> str:
    """speculative_skip_dp_mlp_sync is EAGLE's (0.5.11 to 0.5.22, an assertion). Run."""
    if case.on("speculative_skip_dp_mlp_sync") and case.algorithm != "EAGLE":
        return "speculative_skip_dp_mlp_sync: EAGLE only"
    return ""


def draft_window(case: Case) -> str:
    """The draft's window: a sink needs one, and DFLASH one of at least its block. Run."""
    window, tokens = case.number("speculative_draft_window_size"), case.number("speculative_num_draft_tokens")
    if case.number("speculative_draft_sink_size") is not None and window is None:
        return "speculative_draft_sink_size: needs speculative_draft_window_size"
    if case.algorithm == "DFLASH" and window is not None and tokens is not None and window < tokens:
        return f"speculative_draft_window_size {window}: DFLASH needs at least its block, {tokens}"
    return ""


def block_is_consistent(case: Case) -> str:
    """DFLASH's block is its draft tokens; DSPARK's is one less. Run."""
    tokens = case.number("speculative_num_draft_tokens")
    for algorithm, flag, more in (
        ("DFLASH", "speculative_dflash_block_size", 0),
        ("DSPARK", "speculative_dspark_block_size", 1),
    ):
        size = case.number(flag)
        if case.algorithm == algorithm and size is not None and tokens is not None and tokens != size + more:
            return f"speculative_num_draft_tokens {tokens}: {flag} {size} makes it {size + more}"
    return ""


def ngram_corpus(case: Case) -> str:
    """NGRAM's corpus: its budget is at least 1 and below the draft tokens (0.5.11 and later). Run."""
    if case.algorithm != "NGRAM" or not case.text("speculative_ngram_external_corpus_path"):
        return ""
    budget = case.at_least("speculative_ngram_external_sam_budget", 0)
    tokens = case.at_least("speculative_num_draft_tokens")
    if 0 < budget <= tokens - 1:
        return ""
    return f"speculative_ngram_external_sam_budget {budget}: with a corpus from 1 to {tokens - 1}"


def uno_is_alone(case: Case) -> str:
    """UNO (0.5.20 and later): one GPU, FA3, its own LoRA, no draft; a tree has limits of its own. Read."""
    if case.algorithm != "UNO":
        return ""
    tokens, topk = case.number("speculative_num_draft_tokens"), case.at_least("speculative_eagle_topk")
    if case.text("speculative_draft_model_path") or not case.text("uno_lora_path"):
        return "UNO: needs uno_lora_path and takes no draft model"
    if tokens is None:
        return "speculative_num_draft_tokens is missing: UNO needs it"
    if case.at_least("tp_size") != 1 or case.at_least("pp_size") != 1 or case.dp_attention > 1:
        return "UNO: runs on one GPU only"
    steps = case.number("speculative_num_steps")
    if topk > 1 and (steps is None or not steps < tokens <= 128 or tokens * topk > 2048):
        return "UNO: with topk above 1, steps + 1 <= draft tokens <= 128 and draft tokens x topk <= 2048"
    if topk > 1 and steps is not None and tokens - 1 > topk * max(steps - 1, 0) + 1:
        return f"speculative_num_draft_tokens {tokens}: UNO's tree holds topk x (steps - 1) + 2"
    return ""


OPTION_RULES: tuple[Rule, ...] = (
    draft_moe_runner,
    rejection_sampling,
    block_verification,
    adaptive_start,
    skips_sync,
    draft_window,
    block_is_consistent,
    ngram_corpus,
    uno_is_alone,
)
