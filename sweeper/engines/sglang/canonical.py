"""SGLang's own rewrites, foreseen: what a configuration is once the server has resolved it.

Every version's argument handling was run on the same combinations (tests/sglang_oracle); the version numbers here
are those at which its outcomes change. Sources: server_args.py (_handle_speculative_decoding) up to 0.5.12,
arg_groups/speculative_hook.py from 0.5.13 on. A rewritten configuration is rewritten no further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sweeper.engines.sglang.backends import with_resolved_backends
from sweeper.engines.sglang.case import EAGLE_FAMILY, Case
from sweeper.engines.sglang.dead import dead_flags
from sweeper.engines.sglang.env import spec_v2
from sweeper.engines.sglang.table import DEFAULTS, REAL
from sweeper.spec import FlagValue

Flags = dict[str, FlagValue]

OWN_DRAFT_ARCHITECTURES: Mapping[str, tuple[int, int, int]] = {
    # Targets that carry their draft layer: without a draft path SGLang takes the target's. To the first version.
    **dict.fromkeys(("DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "Glm4MoeForCausalLM"), (0, 5, 8)),
    **dict.fromkeys(("Glm4MoeLiteForCausalLM", "BailingMoeForCausalLM", "BailingMoeV2ForCausalLM"), (0, 5, 8)),
    **dict.fromkeys(("MistralLarge3ForCausalLM", "PixtralForConditionalGeneration"), (0, 5, 8)),
    **dict.fromkeys(("GlmMoeDsaForCausalLM", "BailingMoeV2_5ForCausalLM"), (0, 5, 9)),
    "HYV3ForCausalLM": (0, 5, 11),
    "DeepseekV4ForCausalLM": (0, 5, 12),
    **dict.fromkeys(("HYV4ForCausalLM", "Qwen4ExpForConditionalGeneration"), (0, 5, 20)),
}

_WIDE_DEFAULT = frozenset({"LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM"})
"""Targets whose default is (5, 4, 8); every other one gets (3, 1, 4) (auto_choose_speculative_params)."""

SPECULATIVE_LIMIT = 48
"""max_running_requests when it is not set and speculation is on, in every version; without it there is none."""


def plain_flags(flags: Mapping[str, FlagValue]) -> Flags:
    """`flags` with equal values spelt equally: numbers in their own type, no absent flags, no written defaults."""
    plain = {name: plain_value(name, value) for name, value in flags.items() if value is not False}
    if str(plain.get("speculative_algorithm", "none")).lower() == "none":
        plain.pop("speculative_algorithm", None)
    return {name: value for name, value in plain.items() if name not in DEFAULTS or value != DEFAULTS[name]}


def plain_value(name: str, value: FlagValue) -> FlagValue:
    """The value in its flag's own type: 4.0 is 4, and 1 is 1.0 for a real-valued flag. Algorithms: upper case."""
    if isinstance(value, str):
        return value.upper() if name == "speculative_algorithm" and value.lower() != "none" else value
    if isinstance(value, bool):
        return value
    if name in REAL:
        return float(value) + 0.0  # -0.0 becomes 0.0
    return int(value) if float(value).is_integer() else value


def resolved(case: Case) -> Case:
    """The case as the server resolves it. What it refuses is left as it is: the rules name it."""
    case = replace(case, flags=plain_flags(case.flags))
    case = _with(case, {"speculative_algorithm": _algorithm(case)})
    case = replace(case, flags=_without(case.flags, dead_flags(case)))
    case = with_resolved_backends(case)
    case = _speculation(case) if case.algorithm else case
    if _overlap_is_off(case):
        case = _with(case, {"disable_overlap_schedule": True})
    # Again: a flag can be dead for a value that was filled in.
    return replace(case, flags=_without(case.flags, dead_flags(case)))


def _algorithm(case: Case) -> str:
    """NEXTN is EAGLE in every version; both are FROZEN_KV_MTP with a Gemma4 assistant as draft (since 0.5.12)."""
    algorithm = "EAGLE" if case.algorithm == "NEXTN" else case.algorithm
    assistant = case.draft is not None and case.draft.is_gemma4_assistant
    return "FROZEN_KV_MTP" if algorithm == "EAGLE" and assistant and case.version.since(0, 5, 12) else algorithm


def _overlap_is_off(case: Case) -> bool:
    """Whether SGLang switches the overlapping schedule off by itself.

    With pipeline stages always. Under speculation up to 0.5.13: for all but the EAGLE family; for that one unless
    SGLANG_ENABLE_SPEC_V2 is on, and in 0.5.11 and 0.5.12 with branches too (the first worker is used then).
    """
    if case.at_least("pp_size") > 1:
        return True
    if not case.algorithm or case.version.since(0, 5, 14):
        return False
    if case.algorithm not in EAGLE_FAMILY or not spec_v2(case.env, case.version):
        return True
    tree = case.at_least("speculative_eagle_topk") > 1
    return tree and case.version.since(0, 5, 11) and not case.version.since(0, 5, 13)


def _speculation(case: Case) -> Case:
    """The rewrites that belong to the algorithm."""
    case = _filled(case, {"max_running_requests": SPECULATIVE_LIMIT})
    if case.algorithm in EAGLE_FAMILY:
        return _eagle_family(case)
    if case.algorithm == "NGRAM":
        return _ngram(case)
    if case.algorithm in ("DFLASH", "DSPARK"):
        return _block(case)
    if case.algorithm == "UNO" and case.at_least("speculative_eagle_topk") <= 1:
        return _with(case, {"speculative_num_steps": 1, "speculative_eagle_topk": 1})
    return case


def _eagle_family(case: Case) -> Case:
    """Draft path, the three numbers, and what follows from one draft per step."""
    if case.target is not None and case.target_path and _carries_draft(case):
        case = _filled(case, {"speculative_draft_model_path": case.target_path})
    if case.on("speculative_adaptive") and case.version.since(0, 5, 14):
        case = _adaptive(case)
    elif case.number("speculative_num_steps") is None:
        case = _default_numbers(case)
    if case.on("speculative_use_block_verification") and case.algorithm != "STANDALONE":
        case = _with(case, {"speculative_use_rejection_sampling": True})
    steps = case.number("speculative_num_steps")
    if case.number("speculative_eagle_topk") == 1 and steps is not None:
        # "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1", a warning in every version.
        case = _with(case, {"speculative_num_draft_tokens": steps + 1})
    return case


def _carries_draft(case: Case) -> bool:
    """Whether SGLang takes the target for its own draft when no draft is named."""
    since = OWN_DRAFT_ARCHITECTURES.get(case.target.architecture) if case.target else None
    return since is not None and case.version.since(*since)


def _default_numbers(case: Case) -> Case:
    """Steps, branches and draft tokens when none of the three is set; with some of them the server asserts."""
    if case.target is None or case.target.error:
        return case
    if (
        case.number("speculative_eagle_topk") is not None
        or case.number("speculative_num_draft_tokens") is not None
    ):
        return case
    wide = case.algorithm != "STANDALONE" and case.target.architecture in _WIDE_DEFAULT
    steps, topk, tokens = (5, 4, 8) if wide else (3, 1, 4)
    return _with(
        case,
        {
            "speculative_num_steps": steps,
            "speculative_eagle_topk": topk,
            "speculative_num_draft_tokens": tokens,
        },
    )


ADAPTIVE_STEPS = (0, 1, 3, 7)
ADAPTIVE_STEPS_21 = (0, 1, 3, 5, 7)
"""The steps between which adaptive speculation chooses by default, up to 0.5.19 and from 0.5.20 on."""


def adaptive_steps(case: Case) -> tuple[int, ...]:
    """Legal values of speculative_num_steps under speculative_adaptive; empty when a file on the host has them."""
    if case.text("speculative_adaptive_config"):
        return ()
    return ADAPTIVE_STEPS_21 if case.version.since(0, 5, 20) else ADAPTIVE_STEPS


def _adaptive(case: Case) -> Case:
    """One branch, and the middle one of the possible steps to begin with (_init_adaptive_speculative_params)."""
    case = _filled(case, {"speculative_eagle_topk": 1})
    if candidates := adaptive_steps(case):
        case = _filled(case, {"speculative_num_steps": candidates[len(candidates) // 2]})
    return case


def _ngram(case: Case) -> Case:
    """The breadth of the search is the number of branches; steps follow from 0.5.14 on, when not set."""
    breadth = case.at_least("speculative_ngram_max_bfs_breadth", 10)
    case = _with(case, {"speculative_eagle_topk": breadth})
    window = 12 if case.version.since(0, 5, 10) else case.at_least("speculative_ngram_max_match_window_size", 12)
    case = _filled(case, {"speculative_num_draft_tokens": window})
    if case.version.since(0, 5, 14) and breadth > 0:
        case = _filled(case, {"speculative_num_steps": case.at_least("speculative_num_draft_tokens") // breadth})
    return case


def _block(case: Case) -> Case:
    """DFLASH and DSPARK draft a block at once: one step, one branch, tokens from the block's size."""
    case = _with(case, {"speculative_num_steps": 1, "speculative_eagle_topk": 1})
    is_dspark = case.algorithm == "DSPARK"
    size = case.number("speculative_dspark_block_size" if is_dspark else "speculative_dflash_block_size")
    if size is None and case.draft is not None and not case.draft.error:
        size = case.draft.block_size if is_dspark else case.draft.block_size or 16
    return case if size is None else _filled(case, {"speculative_num_draft_tokens": size + is_dspark})


def _with(case: Case, values: Mapping[str, FlagValue]) -> Case:
    """The case with these values; an empty text takes the flag away."""
    flags = {**case.flags, **values}
    return replace(case, flags={name: value for name, value in flags.items() if value != ""})


def _filled(case: Case, values: Mapping[str, FlagValue]) -> Case:
    """The case with these values where it has none."""
    return replace(case, flags={**values, **case.flags})


def _without(flags: Mapping[str, FlagValue], names: Mapping[str, str]) -> Flags:
    return {name: value for name, value in flags.items() if name not in names}
