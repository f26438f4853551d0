"""Flags of SGLang that change nothing: in any version, on this host, or under this algorithm."""

from __future__ import annotations

from collections.abc import Iterator

from sweeper.engines.sglang.case import EAGLE_FAMILY, Case
from sweeper.engines.sglang.env import spec_v2

NO_NVLINK = frozenset({"sm120", "sm89", "sm75"})
"""Architectures whose cards all talk over PCIe only (RTX PRO 6000, L40S, L4, T4, RTX 4090, RTX 5090)."""

_OF_ONE_ALGORITHM = (
    ("speculative_ngram_", ("NGRAM",)),
    ("speculative_dflash_", ("DFLASH",)),
    ("speculative_domino_", ("DFLASH",)),
    ("speculative_dspark_", ("DSPARK",)),
    ("uno_", ("UNO",)),
)

_NEEDS_A_DRAFT = (
    "speculative_draft_model_path",
    "speculative_draft_model_revision",
    "speculative_draft_model_quantization",
    "speculative_draft_load_format",
    "speculative_draft_attention_backend",
    "speculative_draft_kv_cache_dtype",
    "speculative_token_map",
    "speculative_moe_runner_backend",
    "speculative_moe_a2a_backend",
    "enable_multi_layer_eagle",
)


def dead_flags(case: Case) -> dict[str, str]:
    """Flags of the case that change nothing, each with the reason. `case` has plain values (plain_flags)."""
    found = dict(_everywhere(case))
    if not case.algorithm:
        found |= dict.fromkeys(_speculative(case), "there is no speculation without speculative_algorithm")
    else:
        found |= dict(_under_algorithm(case))
    return {name: reason for name, reason in found.items() if name in case.flags}


def _speculative(case: Case) -> list[str]:
    """Every flag of the case that belongs to speculation; an algorithm that is not one counts as none."""
    return [
        name
        for name in case.flags
        if name.startswith(("speculative_", "uno_")) or name in ("enable_multi_layer_eagle", "spec_trace_dir")
    ]


def _everywhere(case: Case) -> Iterator[tuple[str, str]]:
    """Dead under every algorithm."""
    yield "num_continuous_decode_steps", "no version of SGLang from 0.4.6 to 0.5.23 reads it"
    pcie_ring = case.gpu in NO_NVLINK and case.at_least("tp_size") > 2
    if pcie_ring and "SGLANG_ENABLE_PCIE_IPC_ALLREDUCE" not in case.env:
        yield (
            "disable_custom_all_reduce",
            "on more than two GPUs without NVLink SGLang switches it off by itself (custom_all_reduce.py)",
        )
    if case.dp_attention == 1:
        for name in ("enable_dp_attention", "enable_dp_lm_head"):
            yield name, "SGLang drops it when there is one group only (server_args.py, _handle_data_parallelism)"


def _under_algorithm(case: Case) -> Iterator[tuple[str, str]]:
    """Dead under the algorithm of the case."""
    algorithm = case.algorithm
    for name in case.flags:
        owners = next((owners for prefix, owners in _OF_ONE_ALGORITHM if name.startswith(prefix)), (algorithm,))
        if algorithm not in owners:
            yield name, f"only {' and '.join(owners)} reads it"
    if algorithm == "NGRAM":
        yield from ((name, "NGRAM has no draft model") for name in _NEEDS_A_DRAFT)
    if algorithm == "EAGLE3":
        yield "speculative_token_map", "an EAGLE3 draft brings its own; SGLang ignores this one with a warning"
    if not _keeps_mixed_chunk(case):
        yield "enable_mixed_chunk", f"SGLang switches it off under {algorithm} (E14 of speculative_hook.py)"
    if reason := _overlap_is_decided(case):
        yield "disable_overlap_schedule", reason
    if (reason := adaptive_unsupported(case)) and case.version.since(0, 5, 11):
        yield "speculative_adaptive", f"SGLang falls back to static numbers: {reason}"
        yield "speculative_adaptive_config", f"SGLang falls back to static numbers: {reason}"
    elif not case.on("speculative_adaptive"):
        yield "speculative_adaptive_config", "speculative_adaptive is not set"
    if algorithm not in _window_readers(case):
        yield "speculative_draft_window_size", f"{algorithm} does not read it (speculative_hook.py)"


def _keeps_mixed_chunk(case: Case) -> bool:
    """Which algorithms keep mixed chunked prefill: none before 0.5.19 (spec_info.py, supports_mixed_chunk)."""
    return case.version.since(0, 5, 19) and case.algorithm in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK")


def _overlap_is_decided(case: Case) -> str:
    """Why disable_overlap_schedule is overwritten; empty when it is respected, or holds anyway."""
    if case.algorithm in EAGLE_FAMILY and not case.version.since(0, 5, 11) and spec_v2(case.env, case.version):
        return "SGLANG_ENABLE_SPEC_V2 switches the overlap on, up to 0.5.10"
    return ""


def adaptive_unsupported(case: Case) -> str:
    """Why the numbers would stay as they are in spite of speculative_adaptive (adaptive_spec_params.py)."""
    topk = case.number("speculative_eagle_topk")
    if case.algorithm not in ("EAGLE", "EAGLE3"):
        return "only EAGLE and EAGLE3 adapt"
    if topk not in (None, 1):
        return "it needs speculative_eagle_topk 1"
    overlaps = not case.on("disable_overlap_schedule") and spec_v2(case.env, case.version)
    if case.version.release == (0, 5, 11) and overlaps:
        return "in 0.5.11 it needs disable_overlap_schedule"
    if case.dp_attention > 1:
        return "attention in data-parallel groups cannot adapt"
    for name in ("enable_multi_layer_eagle", "enable_two_batch_overlap", "enable_pdmux"):
        if case.on(name):
            return f"{name} cannot adapt"
    return ""


def _window_readers(case: Case) -> tuple[str, ...]:
    """A window next to a sink is left, for the rules to judge; so is one that the version does not know."""
    if "speculative_draft_sink_size" in case.flags or not case.version.since(0, 5, 12):
        return (case.algorithm,)
    return ("EAGLE", "EAGLE3", "DFLASH") if case.version.since(0, 5, 21) else ("EAGLE3", "DFLASH")
