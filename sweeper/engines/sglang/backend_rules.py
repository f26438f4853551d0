"""Rules on attention backends, in the form of rules.py; listed in BACKEND_RULES."""

from __future__ import annotations

from sweeper.engines.sglang.backends import CAUSAL_MLA, MLA_ONLY, backends, decode_backend, prefill_backend
from sweeper.engines.sglang.case import EAGLE_FAMILY, Case
from sweeper.engines.sglang.rules import Rule
from sweeper.engines.sglang.table import CHOICES

_DRAFTING = frozenset(
    # What the draft worker can run (speculative/draft_utils.py), on a GPU of NVIDIA, in every version.
    [
        "flashinfer",
        "triton",
        "fa3",
        "hybrid_linear_attn",
        "flashmla",
        "trtllm_mha",
        "trtllm_mla",
        "nsa",
        "aiter",
        "ascend",
    ]
)
_DRAFTING_SINCE = {
    "fa4": (0, 5, 10),
    "dsa": (0, 5, 13),
    "dsv4": (0, 5, 12),
    "cutedsl_mla": (0, 5, 13),
    "tokenspeed_mla": (0, 5, 12),
    "intel_amx": (0, 5, 20),
    "intel_xpu": (0, 5, 20),
    "qsa": (0, 5, 20),
}
_CHAIN_DRAFTING = frozenset({"trtllm_mha", "flashmla", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla"})


def choices_of_this_version(case: Case) -> str:
    """A value that another version has is an argparse error. Run."""
    for flag, values in CHOICES.items():
        value = case.flags.get(flag)
        if isinstance(value, str) and value in values:
            since, until = values[value]
            if not since <= case.version.release < until:
                return f"{flag} {value}: this version of SGLang does not have it"
    return ""


def page_of_a_tree(case: Case) -> str:
    """E6: branches with pages of several tokens, on backends that cannot page a tree. Run.

    EAGLE family: flashinfer and fa3, from 0.5.13 on triton too; NGRAM: flashinfer only. Only attention_backend
    counts.
    """
    page, topk = case.at_least("page_size"), case.at_least("speculative_eagle_topk", 0)
    backend = case.text("attention_backend")
    if page <= 1 or topk <= 1 or not backend or case.algorithm not in (*EAGLE_FAMILY, "NGRAM"):
        return ""
    able: tuple[str, ...] = ("flashinfer", "fa3")
    if case.algorithm == "NGRAM":
        able = ("flashinfer",)
    elif case.version.since(0, 5, 13):
        able = ("flashinfer", "fa3", "triton")
    return (
        "" if backend in able else f"page_size {page} with topk {topk}: only on {', '.join(able)}, not {backend}"
    )


def trtllm_mha_is_a_chain(case: Case) -> str:
    """E7: trtllm_mha with branches, wherever it serves. Run."""
    topk = case.at_least("speculative_eagle_topk", 0)
    if case.algorithm in EAGLE_FAMILY and topk > 1 and "trtllm_mha" in backends(case):
        return f"speculative_eagle_topk {topk}: trtllm_mha supports topk 1 only"
    return ""


def draft_backend_is_a_chain(case: Case) -> str:
    """E8: branches over several steps on a draft backend that has none: refused after the target is loaded. Read.

    flashmla and the trtllm_mla family always, flashinfer when the draft is MLA ("... only supports topk=1").
    """
    topk, steps = case.at_least("speculative_eagle_topk", 0), case.at_least("speculative_num_steps", 0)
    if case.algorithm not in EAGLE_FAMILY or topk <= 1 or steps <= 1:
        return ""
    backend = case.text("speculative_draft_attention_backend") or decode_backend(case)
    is_mla = case.draft is not None and case.draft.is_mla
    if backend in _CHAIN_DRAFTING or (backend == "flashinfer" and is_mla):
        return f"speculative_eagle_topk {topk}: {backend} drafts with topk 1 only"
    return ""


def tree_is_verified_as_a_tree(case: Case) -> str:
    """E8b: SILENTLY WRONG. An MLA target verifies branches under a causal mask: other output than its own. Read.

    flashinfer_mla_backend.py lacks the mask for topk > 1, by its own comment, and plans causal=True in every
    version; nothing refuses it when the draft is not MLA or has one step. Other MLA backends have the same mask,
    and NGRAM verifies with them too.
    """
    topk = case.at_least("speculative_eagle_topk", 0)
    if (
        topk <= 1
        or case.target is None
        or not case.target.is_mla
        or case.algorithm not in (*EAGLE_FAMILY, "NGRAM")
    ):
        return ""
    in_decode = case.text("speculative_attention_mode") == "decode"
    backend = decode_backend(case) if in_decode else prefill_backend(case)
    if backend not in CAUSAL_MLA:
        return ""
    return (
        f"speculative_eagle_topk {topk}: {backend} verifies branches of an MLA target under a causal mask, "
        "silently giving other output than the target; use triton, or topk 1"
    )


def draft_backend_exists(case: Case) -> str:
    """E9: a backend that cannot draft: "EAGLE is not supported in ... backend", after the load. Read."""
    if case.algorithm not in EAGLE_FAMILY:
        return ""
    own = case.text("speculative_draft_attention_backend")
    in_decode = case.text("speculative_attention_mode") == "decode"
    extend = decode_backend(case) if in_decode else prefill_backend(case)
    drafting = () if case.at_least("speculative_num_steps", 2) <= 1 else (own or decode_backend(case),)
    for backend in (*drafting, own or extend):
        since = _DRAFTING_SINCE.get(backend)
        able = backend in _DRAFTING or (since is not None and case.version.since(*since))
        if backend and not able:
            return f"speculative_draft_attention_backend is needed: {backend} cannot draft in this version"
    return ""


def draft_backend_fits_the_draft(case: Case) -> str:
    """E10: an MLA backend for a draft that is not MLA, or trtllm_mha for one that is (#23490). Read.

    The default on a B200 with a DeepSeek or Kimi target is trtllm_mla: name the draft's backend.
    """
    if case.algorithm not in EAGLE_FAMILY or case.draft is None or case.draft.error:
        return ""
    backend = case.text("speculative_draft_attention_backend") or decode_backend(case)
    if not case.draft.is_mla and backend in MLA_ONLY - {"cutlass_mla"}:
        return f"speculative_draft_attention_backend is needed: {backend} serves MLA models, the draft is none"
    if case.draft.is_mla and backend == "trtllm_mha":
        return "speculative_draft_attention_backend is needed: trtllm_mha serves no MLA models, the draft is one"
    return ""


def backend_fits_the_target(case: Case) -> str:
    """trtllm_mla and its kin want an MLA model, trtllm_mha and hpc_ops none (attention_registry.py). Read."""
    if case.target is None or case.target.error:
        return ""
    for backend in (prefill_backend(case), decode_backend(case)):
        if not case.target.is_mla and backend in MLA_ONLY:
            return f"{backend} serves MLA models only, the target is none"
        if case.target.is_mla and backend in ("trtllm_mha", "hpc_ops"):
            return f"{backend} does not serve MLA models, the target is one"
    return ""


def no_speculation_there(case: Case) -> str:
    """E11: flex_attention asserts that there is no speculation (run); hpc_ops refuses it at load (read)."""
    if not case.algorithm:
        return ""
    if case.text("attention_backend") == "flex_attention":
        return "attention_backend flex_attention: SGLang does not speculate on it"
    return "hpc_ops: SGLang does not speculate on it" if "hpc_ops" in backends(case) else ""


def tree_backend_is_pinned(case: Case) -> str:
    """SGLang's default changes with topk, and whether a tree is legal depends on it: it has to be said. Run."""
    topk = case.at_least("speculative_eagle_topk", 0)
    if topk <= 1 or case.text("attention_backend") or case.algorithm not in (*EAGLE_FAMILY, "NGRAM"):
        return ""
    return f"attention_backend is missing: with topk {topk} its default decides whether the server starts"


BACKEND_RULES: tuple[Rule, ...] = (
    choices_of_this_version,
    page_of_a_tree,
    trtllm_mha_is_a_chain,
    draft_backend_is_a_chain,
    tree_is_verified_as_a_tree,
    draft_backend_exists,
    draft_backend_fits_the_draft,
    backend_fits_the_target,
    no_speculation_there,
    tree_backend_is_pinned,
)
