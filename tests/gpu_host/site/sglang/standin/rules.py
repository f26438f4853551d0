"""How each version resolves, rewrites and refuses its arguments, as far as the EAGLE family and its neighbours go.

Written from the versions' own argument handling (server_args.py, arg_groups/speculative_hook.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from . import log
from .failures import refuse
from .models import Model
from .settings import Args

Version = tuple[int, int, int]
RESET = (
    "Max running requests is reset to 48 for speculative decoding. "
    "You can override this by explicitly setting --max-running-requests."
)
ADJUSTED = "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1"
PIPELINE = (
    "AssertionError: Pipeline parallelism is not compatible with overlap schedule, speculative decoding, "
    "mixed chunked prefill."
)
TOO_LONG = (
    "ValueError: Warning: User-specified context_length ({}) is greater than the derived context_length ({}). "
    "This may lead to incorrect model outputs or CUDA errors. Note that the derived context_length may differ "
    "from max_position_embeddings in the model's config. To allow overriding this maximum, set the env var "
    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
)
MTP_ARCHITECTURES = {"DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "Glm4MoeForCausalLM"}
BUILT_IN = {
    (0, 5, 8): ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"),
    (0, 5, 15): ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "FROZEN_KV_MTP"),
    (0, 5, 20): ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "FROZEN_KV_MTP", "DSPARK", "UNO"),
}


def resolve(args: Args, version: Version, target: Model, env: Mapping[str, str]) -> None:
    """Change `args` as the real one would, with its warnings. Raises ServerError."""
    _general(args, target)
    if version >= (0, 5, 15) and "SGLANG_ENABLE_SPEC_V2" in env and version < (0, 5, 23):
        log.say(
            "SGLANG_ENABLE_SPEC_V2 has been removed: speculative decoding always runs the V2 worker. "
            "Use --disable-overlap-schedule to select the non-overlap (synchronous) path."
        )
    if args["speculative_draft_model_path"] and not args["speculative_draft_model_revision"]:
        args["speculative_draft_model_revision"] = "main"
    _algorithm(args, version)
    if args["speculative_algorithm"] == "NGRAM":
        _ngram(args, version)
    elif args["speculative_algorithm"] is not None:
        _eagle_family(args, version, target, env)
    _check(args, target)


def _general(args: Args, target: Model) -> None:
    defaults = {
        "device": "cuda",
        "served_model_name": args["model_path"],
        "tokenizer_path": args["model_path"],
        "sampling_backend": "flashinfer",
        "grammar_backend": "xgrammar",
        "speculative_moe_runner_backend": "auto",
        "mm_process_config": {},
        "chunked_prefill_size": 8192,
        "mem_fraction_static": 0.88,
    }
    for name, value in defaults.items():
        if name in args and args[name] is None:
            args[name] = value
    if args.get("load_balance_method") == "auto":
        args["load_balance_method"] = "round_robin"
    if args["attention_backend"] is None:
        args["attention_backend"] = "triton" if target.is_mla else "flashinfer"
        log.say(f"Attention backend not specified. Use {args['attention_backend']} backend by default.")
    args["page_size"] = page_size(args)


def page_size(args: Args) -> int:
    """The KV page size that the attention backend forces, or the one asked for, or 1."""
    backends = {args["attention_backend"], args["decode_attention_backend"], args["prefill_attention_backend"]}
    asked: int | None = args["page_size"]
    if "flashmla" in backends:
        return 64
    if "cutlass_mla" in backends:
        return 128
    if "trtllm_mla" in backends:
        return asked if asked in (32, 64) else 64
    if "trtllm_mha" in backends:
        return asked if asked in (16, 32, 64) else 64
    return asked or 1


def _algorithm(args: Args, version: Version) -> None:
    name = args["speculative_algorithm"]
    if name is None:
        return
    if version >= (0, 5, 15):
        name = name.upper()
    known = BUILT_IN[max(since for since in BUILT_IN if since <= version)]
    if name not in known:
        refuse(f"ValueError: Unknown speculative algorithm name: {name}")
    args["speculative_algorithm"] = "EAGLE" if name == "NEXTN" else name


def _ngram(args: Args, version: Version) -> None:
    _reset_running(args)
    args["enable_mixed_chunk"] = False
    if version < (0, 5, 15):
        args["disable_overlap_schedule"] = True
    args["speculative_eagle_topk"] = args["speculative_ngram_max_bfs_breadth"]
    if args["speculative_num_draft_tokens"] is None:
        args["speculative_num_draft_tokens"] = 12
    if args["speculative_num_steps"] is None:
        args["speculative_num_steps"] = args["speculative_num_draft_tokens"] // args["speculative_eagle_topk"]
    if args["speculative_eagle_topk"] > 1 and args["page_size"] > 1 and args["attention_backend"] != "flashinfer":
        refuse(
            f"ValueError: speculative_eagle_topk({args['speculative_eagle_topk']}) > 1 with page_size"
            f"({args['page_size']}) > 1 is unstable and produces incorrect results for paged attention backends. "
            "This combination is only supported for the 'flashinfer' backend."
        )
    if args["enable_dp_attention"]:
        refuse("ValueError: Currently ngram speculative decoding does not support dp attention.")


def _reset_running(args: Args) -> None:
    if args["max_running_requests"] is None:
        args["max_running_requests"] = 48
        log.say(RESET)


def _eagle_family(args: Args, version: Version, target: Model, env: Mapping[str, str]) -> None:
    if args["speculative_algorithm"] == "STANDALONE" and args["enable_dp_attention"]:
        refuse("ValueError: Currently standalone speculative decoding does not support dp attention.")
    _reset_running(args)
    _overlap(args, version, env)
    if args["enable_mixed_chunk"] and not (
        version >= (0, 5, 23) and args["speculative_algorithm"] != "STANDALONE"
    ):
        args["enable_mixed_chunk"] = False
        log.say("Mixed chunked prefill is disabled because of using eagle speculative decoding.")
    if target.architecture in MTP_ARCHITECTURES:
        if args["speculative_draft_model_path"] is None:
            args["speculative_draft_model_path"] = args["model_path"]
        else:
            log.say("DeepSeek MTP does not require setting speculative_draft_model_path.")
    _shape(args, target)
    _pages(args, version)


def _overlap(args: Args, version: Version, env: Mapping[str, str]) -> None:
    if version >= (0, 5, 15):
        if args["disable_overlap_schedule"]:
            log.say("Non-overlap (synchronous) spec v2 is used for eagle/eagle3/standalone speculative decoding.")
        return
    if env.get("SGLANG_ENABLE_SPEC_V2", "").lower() in ("1", "true"):
        args["disable_overlap_schedule"] = False
        log.say("Spec v2 is enabled for eagle/eagle3 speculative decoding and overlap schedule is turned on.")
        if (args["speculative_eagle_topk"] or 1) > 1:
            refuse("ValueError: Spec v2 currently only supports topk = 1 for speculative decoding.")
        return
    args["disable_overlap_schedule"] = True
    log.say(
        "Overlap scheduler is disabled when spec v2 is off or using unsupported speculative algorithm. "
        "You can set env SGLANG_ENABLE_SPEC_V2=True to enable the experimental overlap scheduler. "
    )


def _shape(args: Args, target: Model) -> None:
    """Steps, topk and draft tokens: filled in, adjusted or refused."""
    names = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    if args.get("speculative_adaptive"):
        args.update(zip(names, (args[names[0]] or 3, 1, (args[names[0]] or 3) + 1), strict=True))
    if args[names[0]] is None:
        if args[names[1]] is not None or args[names[2]] is not None:
            refuse("AssertionError")
        deep = target.architecture not in ("LlamaForCausalLM", "Grok1ForCausalLM")
        small = deep or args["speculative_algorithm"] == "STANDALONE"
        args.update(zip(names, (3, 1, 4) if small else (5, 4, 8), strict=True))
    if args[names[1]] is None:
        refuse("TypeError: '>' not supported between instances of 'NoneType' and 'int'")
    backends = {args["attention_backend"], args["decode_attention_backend"], args["prefill_attention_backend"]}
    if "trtllm_mha" in backends and args[names[1]] > 1:
        refuse("ValueError: trtllm_mha backend only supports topk = 1 for speculative decoding.")
    if args[names[1]] == 1 and args[names[2]] != args[names[0]] + 1:
        log.say(ADJUSTED)
        args[names[2]] = args[names[0]] + 1


def _pages(args: Args, version: Version) -> None:
    if args["speculative_eagle_topk"] <= 1 or args["page_size"] <= 1:
        return
    fit = ("flashinfer", "fa3", "triton") if version >= (0, 5, 15) else ("flashinfer", "fa3")
    if args["attention_backend"] in fit:
        return
    if version >= (0, 5, 15):
        refuse(
            f"ValueError: speculative_eagle_topk > 1 with page_size > 1 is only supported on {fit}; got "
            f"attention_backend={args['attention_backend']!r}. Use page_size == 1 or one of those backends."
        )
    refuse(
        "ValueError: speculative_eagle_topk > 1 with page_size > 1 is unstable and produces incorrect results for "
        "paged attention backends. This combination is only supported for the 'flashinfer' backend."
    )


def _check(args: Args, target: Model) -> None:
    """The last checks, for every algorithm."""
    wanted, derived = args["context_length"], target.context_length
    allowed = os.environ.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "").lower() in ("1", "true")
    checks: tuple[tuple[Callable[[], bool], str], ...] = (
        (
            lambda: args["pp_size"] > 1 and args["speculative_algorithm"] is not None,
            PIPELINE,
        ),
        (
            lambda: args["chunked_prefill_size"] > 0 and args["chunked_prefill_size"] % args["page_size"] != 0,
            "AssertionError: chunked_prefill_size must be divisible by page_size",
        ),
        (
            lambda: wanted is not None and wanted > derived and not allowed,
            TOO_LONG.format(wanted, derived),
        ),
        (
            lambda: args["tp_size"] * args["pp_size"] % args["nnodes"] != 0,
            "AssertionError: tp_size must be divisible by number of nodes",
        ),
        (
            lambda: bool(args.get("speculative_use_rejection_sampling")) and args["speculative_eagle_topk"] != 1,
            "ValueError: --speculative-use-rejection-sampling requires --speculative-eagle-topk=1.",
        ),
    )
    for broken, cause in checks:
        if broken():
            refuse(cause)
