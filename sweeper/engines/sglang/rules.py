"""What SGLang refuses, crashes on or silently gets wrong: one small function per rule, listed in RULES.

Each takes a resolved case and gives a line, or nothing. Its docstring says what, where that was found and for
which versions (0.5.8 to 0.5.23 unless said otherwise); E..., M... and 1.5 number the rules. "Run": SGLang's
own argument handling was executed and says the same (tests/sglang_oracle). "Read": seen in its source.
"""

from __future__ import annotations

from collections.abc import Callable

from sweeper.engines.sglang.case import EAGLE_FAMILY, Case
from sweeper.engines.sglang.env import is_true, spec_v2
from sweeper.engines.sglang.table import ALGORITHMS

Rule = Callable[[Case], str]


def algorithm_exists(case: Case) -> str:
    """Each version knows its algorithms only. Run; argparse choices up to 0.5.10, spec_info.py later."""
    since = ALGORITHMS.get(case.algorithm)
    if not case.algorithm or (since is not None and case.version.since(*since)):
        return ""
    return f"speculative_algorithm {case.algorithm}: this version of SGLang does not have it"


def numbers_are_complete(case: Case) -> str:
    """E1, E2, E3: steps, branches and draft tokens are set together or not at all.

    Steps missing: an assertion without a message (E1, run). Branches missing: TypeError (E2, run). Draft tokens
    missing with several branches: accepted, then a TypeError when the draft worker starts (E3, read).
    """
    if case.algorithm not in EAGLE_FAMILY:
        return ""
    steps, topk, tokens = _numbers(case)
    if steps is None and (topk is not None or tokens is not None):
        return "speculative_num_steps is missing: with only some of steps, topk and draft tokens SGLang asserts"
    if steps is not None and topk is None:
        return "speculative_eagle_topk is missing: SGLang compares it with a number and stops"
    if topk is not None and topk > 1 and tokens is None:
        return "speculative_num_draft_tokens is missing: with topk above 1 SGLang needs it"
    return ""


def steps_exist(case: Case) -> str:
    """No steps, no drafts: 0 has a meaning under speculative_adaptive only (adaptive_spec_params.py). Read."""
    if case.algorithm in EAGLE_FAMILY and case.number("speculative_num_steps") == 0:
        return "" if case.on("speculative_adaptive") else "speculative_num_steps 0: nothing would be drafted"
    return ""


def tree_is_large_enough(case: Case) -> str:
    """1.5: draft tokens beyond steps x topk + 1 cannot be chosen, or are nodes that are hardly ever accepted.

    The tree has topk + (steps - 1) x topk^2 candidates; more draft tokens than those and the root end in "selected
    index k out of range" (eagle_utils.py). SGLang's own sweep script draws the line lower and so do we
    (bench_speculative.py: `steps * topk + 1 < draft tokens` is skipped); oversized trees crashed (#12349). Read.
    """
    steps, topk, tokens = _numbers(case)
    if case.algorithm not in EAGLE_FAMILY or steps is None or topk is None or tokens is None or topk == 1:
        return ""
    limit = steps * topk + 1
    if tokens <= limit:
        return ""
    return f"speculative_num_draft_tokens {tokens}: a tree of {steps} steps with topk {topk} has use for {limit}"


def depth_is_used(case: Case) -> str:
    """1.5: fewer draft tokens than steps + 1 throw the deepest level away: its draft step is wasted. Read."""
    steps, topk, tokens = _numbers(case)
    if case.algorithm not in EAGLE_FAMILY or steps is None or tokens is None or topk is None or topk == 1:
        return ""
    if tokens > steps:
        return ""
    return (
        f"speculative_num_draft_tokens {tokens}: {steps} steps need {steps + 1}, "
        "else the last steps are drafted and always thrown away"
    )


def draft_is_named(case: Case) -> str:
    """E18: a draft model is needed. Without one SGLang takes the target for the draft and crashes after its load.

    EAGLE3 and STANDALONE: `set_embed` / `hot_token_id` AttributeError (#36528, read). DFLASH: ValueError (run).
    """
    path = case.text("speculative_draft_model_path")
    if case.algorithm in ("EAGLE3", "STANDALONE", "DFLASH"):
        if path and (case.algorithm != "EAGLE3" or path != case.target_path):
            return ""
        return f"speculative_draft_model_path is missing: {case.algorithm} needs a draft model of its own"
    if case.algorithm != "EAGLE" or path or case.target is None or case.target.error:
        return ""
    name = case.target.architecture or "this target"
    return f"speculative_draft_model_path is missing: {name} carries no draft layer of its own"


def own_draft_layer_exists(case: Case) -> str:
    """E18: a target that is its own draft needs such a layer: Kimi-K2 has DeepSeek-V3's name without it. Read."""
    target = case.target
    if case.algorithm != "EAGLE" or target is None or not case.target_path:
        return ""
    if case.text("speculative_draft_model_path") != case.target_path or target.num_nextn_layers != 0:
        return ""
    return "speculative_draft_model_path is missing: the target has no draft layer (num_nextn_predict_layers 0)"


def spec_v2_is_a_chain(case: Case) -> str:
    """E12: the overlapping worker of 0.5.8 to 0.5.10 refuses branches. Run."""
    topk = case.number("speculative_eagle_topk")
    if case.algorithm not in EAGLE_FAMILY or topk is None or topk <= 1 or case.version.since(0, 5, 11):
        return ""
    return (
        f"SGLANG_ENABLE_SPEC_V2 with topk {topk}: up to 0.5.10 only topk 1"
        if spec_v2(case.env, case.version)
        else ""
    )


def no_pipeline(case: Case) -> str:
    """E15: speculation over pipeline stages: refused; from 0.5.21 on EAGLE with SGLANG_ENABLE_PP_SPEC. Run."""
    pp_size = case.at_least("pp_size")
    if pp_size <= 1 or not case.algorithm:
        return ""
    if not case.version.since(0, 5, 21) or not is_true(case.env, "SGLANG_ENABLE_PP_SPEC"):
        return f"pp_size {pp_size}: SGLang does not speculate over pipeline stages"
    if case.algorithm != "EAGLE" or case.on("enable_multi_layer_eagle") or case.on("speculative_adaptive"):
        return f"pp_size {pp_size}: only plain EAGLE speculates over pipeline stages"
    if case.dp_attention > 1 or case.at_least("speculative_eagle_topk") > 1:
        return f"pp_size {pp_size}: with speculation neither data-parallel attention nor topk above 1"
    return ""


def no_mixed_pipeline(case: Case) -> str:
    """Mixed chunks with pipeline parallelism: an assertion, up to 0.5.19. Run."""
    if case.at_least("pp_size") > 1 and case.on("enable_mixed_chunk") and not case.version.since(0, 5, 11):
        return "enable_mixed_chunk: SGLang refuses it with pp_size above 1"
    return ""


def no_data_parallel_attention(case: Case) -> str:
    """E16: STANDALONE and NGRAM never, DFLASH and DSPARK only with the head split as well. Run."""
    if case.dp_attention <= 1 or not case.algorithm:
        return ""
    if case.algorithm in ("STANDALONE", "NGRAM"):
        return f"data-parallel attention: SGLang has none with {case.algorithm}"
    if case.algorithm == "DFLASH" and not case.version.since(0, 5, 23):
        return "data-parallel attention: SGLang has none with DFLASH up to 0.5.22"
    if case.algorithm in ("DFLASH", "DSPARK") and not case.on("enable_dp_lm_head"):
        return f"data-parallel attention: {case.algorithm} needs enable_dp_lm_head with it"
    return ""


def no_lora(case: Case) -> str:
    """E17: LoRA next to speculation: NGRAM always, from 0.5.19 on EAGLE, EAGLE3, DFLASH, DSPARK too. Run."""
    if not case.algorithm or not (case.on("enable_lora") or "lora_paths" in case.flags):
        return ""
    able = ("NGRAM", "EAGLE", "EAGLE3", "DFLASH", "DSPARK") if case.version.since(0, 5, 19) else ("NGRAM",)
    if case.algorithm not in able:
        return f"enable_lora: this version speculates beside LoRA with {', '.join(able)} only"
    if case.algorithm == "NGRAM":
        return ""
    if case.on("speculative_adaptive"):
        return "enable_lora: not with speculative_adaptive"
    overlap = is_true(case.env, "SGLANG_ENABLE_OVERLAP_PLAN_STREAM")
    return "enable_lora: not with SGLANG_ENABLE_OVERLAP_PLAN_STREAM" if overlap else ""


def _numbers(case: Case) -> tuple[int | None, int | None, int | None]:
    """Steps, branches and draft tokens."""
    return (
        case.number("speculative_num_steps"),
        case.number("speculative_eagle_topk"),
        case.number("speculative_num_draft_tokens"),
    )


RULES: tuple[Rule, ...] = (
    algorithm_exists,
    numbers_are_complete,
    steps_exist,
    tree_is_large_enough,
    depth_is_used,
    draft_is_named,
    own_draft_layer_exists,
    spec_v2_is_a_chain,
    no_pipeline,
    no_mixed_pipeline,
    no_data_parallel_attention,
    no_lora,
)
