"""Attention backends and page sizes: what SGLang makes of them, and which GPU and model each one can serve."""

from __future__ import annotations

from dataclasses import replace

from sweeper.engines.sglang.case import Case
from sweeper.engines.sglang.table import BACKEND_FLAGS

ALIASES = {"tokenspeed_mla": ("cutedsl_mla", (0, 5, 23))}
"""Backend to what SGLang makes of it, and since when."""

MLA_ONLY = frozenset({"flashmla", "cutlass_mla", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla"})

CAUSAL_MLA = MLA_ONLY | {"flashinfer"}
"""Backends that verify a tree of drafts on an MLA model under a causal mask, as if it were a chain."""


def prefill_backend(case: Case) -> str:
    """The backend of the prefill; empty when it is left to SGLang."""
    return case.text("prefill_attention_backend") or case.text("attention_backend")


def decode_backend(case: Case) -> str:
    """The backend of the decode; empty when it is left to SGLang."""
    return case.text("decode_attention_backend") or case.text("attention_backend")


def backends(case: Case) -> tuple[str, ...]:
    """Every attention backend that the case names, as SGLang's own checks look at them."""
    return tuple(name for flag in BACKEND_FLAGS if (name := case.text(flag)))


def with_resolved_backends(case: Case) -> Case:
    """The case with its backends under their own names, and the page size that they force."""
    flags = dict(case.flags)
    for flag in BACKEND_FLAGS:
        own_name, since = ALIASES.get(case.text(flag), ("", (0, 0, 0)))
        if own_name and case.version.since(*since):
            flags[flag] = own_name
    case = replace(case, flags=flags)
    if case.text("prefill_attention_backend") and prefill_backend(case) == decode_backend(case):
        # A split into two equal halves is no split, and overrides attention_backend.
        flags["attention_backend"] = flags.pop("prefill_attention_backend")
        flags.pop("decode_attention_backend", None)
    if flags.get("attention_backend") == "fa3" and flags.get("kv_cache_dtype") == "fp8_e5m2":
        flags["attention_backend"] = "triton"  # FA3 reads fp8_e4m3 only; a warning
    case = replace(case, flags=flags)
    if "cutedsl_mla" in backends(case) and not case.text("prefill_attention_backend"):
        flags["prefill_attention_backend"] = "trtllm_mla"  # CuteDSL decodes only
    if (page := forced_page(case)) is not None:
        flags["page_size"] = page
    return replace(case, flags=flags)


def forced_page(case: Case) -> int | None:
    """The page size that the backends force, when it is another one; each in turn, as SGLang chains them."""
    asked = case.number("page_size")
    page = asked
    serving = {case.text("attention_backend"), case.text("decode_attention_backend")}
    anywhere = set(backends(case))
    if "flashmla" in serving:
        page = 64
    if "cutlass_mla" in serving:
        page = 128
    small = {"trtllm_mla", "tokenspeed_mla"} & serving or {"cutedsl_mla"} & anywhere
    if small and page not in (32, 64):
        page = 64
    if _uses_trtllm_mha(case) and page not in _trtllm_mha_pages(case):
        page = 64
    if _fa4_forces_page(case, anywhere):
        page = 128
    if "hpc_ops" in anywhere:
        page = 64
    return page if page != asked else None


def _uses_trtllm_mha(case: Case) -> bool:
    """From 0.5.17 on the draft's backend counts too (overrides.py, _mla_backend_page_constraints)."""
    draft = case.text("speculative_draft_attention_backend") == "trtllm_mha" and case.version.since(0, 5, 17)
    return "trtllm_mha" in backends(case) or draft


def _trtllm_mha_pages(case: Case) -> tuple[int, ...]:
    return (16, 32, 64, 128) if case.version.since(0, 5, 17) else (16, 32, 64)


def _fa4_forces_page(case: Case, anywhere: set[str]) -> bool:
    """FA4 pages by 128 on models that are not MLA: on a B200 only, from 0.5.10 on; as prefill only, up to 0.5.14.

    Not with branches from 0.5.15 on: the kernel aborts on a tree of pages (overrides.py, _fa4_page_constraint).
    """
    if case.target is None or case.target.is_mla:
        return False
    if case.version.since(0, 5, 15):
        branches = case.at_least("speculative_eagle_topk", 0)
        return case.gpu == "sm100" and "fa4" in anywhere and branches <= 1
    on_gpu = case.gpu == "sm100" or not case.version.since(0, 5, 10)
    return on_gpu and case.text("prefill_attention_backend") == "fa4"
