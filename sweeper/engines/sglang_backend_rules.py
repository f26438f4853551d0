"""Rules on attention backends, page sizes, GPUs and graphs, in the form of sglang_rules.py; listed in BACKEND_RULES."""

from __future__ import annotations

from sweeper.engines.sglang_backends import CAUSAL_MLA, MLA_ONLY, backends, decode_backend, prefill_backend
from sweeper.engines.sglang_case import EAGLE_FAMILY, Case
from sweeper.engines.sglang_env import is_true
from sweeper.engines.sglang_rules import Rule
from sweeper.engines.sglang_table import CHOICES

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
_CHAIN_DRAFTING = frozenset({"flashmla", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla"})
_BLACKWELL = frozenset({"sm100", "sm120"})


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

    EAGLE family: flashinfer and fa3, from 0.5.13 on triton too; NGRAM: flashinfer only. Only attention_backend counts.
    """
    page, topk = case.at_least("page_size"), case.at_least("speculative_eagle_topk", 0)
    backend = case.text("attention_backend")
    if page <= 1 or topk <= 1 or not backend or case.algorithm not in (*EAGLE_FAMILY, "NGRAM"):
        return ""
    able = ("flashinfer", "fa3", "triton") if case.version.since(0, 5, 13) else ("flashinfer", "fa3")
    able = ("flashinfer",) if case.algorithm == "NGRAM" else able
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
    draft = case.draft or (case.target if case.text("speculative_draft_model_path") == case.target_path else None)
    is_mla = draft is not None and draft.is_mla
    if backend in _CHAIN_DRAFTING or (
        backend in ("flashinfer", "trtllm_mha") and (is_mla or backend != "flashinfer")
    ):
        return f"speculative_eagle_topk {topk}: {backend} drafts with topk 1 only"
    return ""


def tree_is_verified_as_a_tree(case: Case) -> str:
    """E8b: SILENTLY WRONG. An MLA target verifies branches under a causal mask: output that is not the target's. Read.

    flashinfer_mla_backend.py: "TODO: Support topk > 1 with custom mask", plan(causal=True), in every version; nothing
    refuses it when the draft is not MLA or has one step. The same masks in the other MLA backends, and for NGRAM.
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
        f"speculative_eagle_topk {topk}: {backend} verifies branches of an MLA target under a causal mask, silently "
        "giving other output than the target; use triton, or topk 1"
    )


def draft_backend_exists(case: Case) -> str:
    """E9: a backend that cannot draft: "EAGLE is not supported in ... backend", after the target is loaded. Read."""
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
    """attention_registry.py: trtllm_mla and its kin want an MLA model, trtllm_mha and hpc_ops one that is none. Read."""
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


def gpu_can(case: Case) -> str:
    """Which GPUs a backend runs on. trtllm_* and cutedsl_mla: run; fa3, flashmla, cutlass_mla: read (at load)."""
    if not case.gpu:
        return ""
    serving = {case.text("attention_backend"), case.text("decode_attention_backend")}
    if "trtllm_mla" in serving and case.gpu not in _BLACKWELL:
        return f"trtllm_mla: needs a Blackwell GPU, not {case.gpu}"
    if "cutedsl_mla" in backends(case) and case.gpu != "sm100":
        return f"cutedsl_mla: needs sm100, not {case.gpu}"
    if "tokenspeed_mla" in serving and case.gpu != "sm100":
        return f"tokenspeed_mla: needs sm100, not {case.gpu}"
    if reason := _trtllm_mha_gpu(case):
        return reason
    if "cutlass_mla" in serving and case.gpu != "sm100":
        return f"cutlass_mla: needs sm100, not {case.gpu}"
    if "flashmla" in serving and case.gpu not in ("sm90", "sm100"):
        return f"flashmla: needs sm90 or sm100, not {case.gpu}"
    return _fa3_gpu(case)


def _trtllm_mha_gpu(case: Case) -> str:
    """sm100 only up to 0.5.9; then decode on sm90 and sm120 too, prefill on those from 0.5.20 on."""
    if "trtllm_mha" not in backends(case):
        return ""
    decoding = ("sm100",) if not case.version.since(0, 5, 10) else ("sm90", "sm100", "sm120")
    prefilling = decoding if case.version.since(0, 5, 20) else ("sm100",)
    if prefill_backend(case) == "trtllm_mha" and case.gpu not in prefilling:
        return f"trtllm_mha: prefill needs {' or '.join(prefilling)}, not {case.gpu}"
    if case.gpu not in decoding:
        return f"trtllm_mha: needs {' or '.join(decoding)}, not {case.gpu}"
    return ""


def _fa3_gpu(case: Case) -> str:
    """attention_registry.py: sm90, or sm8x for a model that is not MLA; #12178 on sm120: no kernel image."""
    for backend, model in ((prefill_backend(case), case.target), (decode_backend(case), case.target)):
        is_mla = model is not None and model.is_mla
        if backend == "fa3" and not (case.gpu == "sm90" or (case.gpu.startswith("sm8") and not is_mla)):
            return f"fa3: does not run {'MLA models ' if is_mla else ''}on {case.gpu}"
    draft = case.text("speculative_draft_attention_backend")
    if draft == "fa3" and not case.gpu.startswith(("sm8", "sm90")):
        return f"speculative_draft_attention_backend fa3: does not run on {case.gpu}"
    return ""


def trtllm_cache_type(case: Case) -> str:
    """trtllm_mla and cutedsl_mla take some types of the KV cache only. Run."""
    serving = {case.text("attention_backend"), case.text("decode_attention_backend")}
    dtype = case.text("kv_cache_dtype")
    able = {"fp8_e4m3", "bf16", "auto"} | (set() if case.version.since(0, 5, 20) else {"fp4_e2m1"})
    if "trtllm_mla" in serving and dtype and dtype not in able:
        return f"kv_cache_dtype {dtype}: trtllm_mla takes {', '.join(sorted(able))}"
    return ""


def page_divides_the_chunk(case: Case) -> str:
    """E23: the prefill's chunk is a whole number of pages, after its division over data-parallel groups. Run.

    Without chunked_prefill_size the chunk is a power of 2 from 2,048 to 16,384, by the GPU's memory.
    """
    page, chunk = case.at_least("page_size"), case.number("chunked_prefill_size")
    if chunk is None:
        return "" if 16384 % page == 0 else f"page_size {page}: does not divide the prefill's chunk, a power of 2"
    if chunk > 0 and case.dp_attention > 1:
        chunk //= case.dp_attention
    if chunk <= 0 or chunk % page == 0:
        return ""
    return f"chunked_prefill_size {chunk}: is no whole number of pages of {page}"


def groups_divide(case: Case) -> str:
    """The data-parallel groups of attention divide the tensor-parallel size: an assertion. Run."""
    tp_size, groups = case.at_least("tp_size"), case.dp_attention
    return f"tp_size {tp_size}: is not divided by {groups} groups" if groups > 1 and tp_size % groups else ""


def context_fits(case: Case) -> str:
    """E24: a context longer than the model's own, unless SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN. Run."""
    length, target = case.number("context_length"), case.target
    if length is None or target is None or target.context_length is None or length <= target.context_length:
        return ""
    if is_true(case.env, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"):
        return ""
    return f"context_length {length}: the model has {target.context_length}"


def graphs_are_padded(case: Case) -> str:
    """M5: no padding of CUDA graphs with torch compile: an assertion (0.5.15 and later). Run."""
    both = case.on("disable_cuda_graph_padding") and case.on("enable_torch_compile")
    if both and case.version.since(0, 5, 15):
        return "disable_cuda_graph_padding: not with enable_torch_compile"
    return ""


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
    gpu_can,
    trtllm_cache_type,
    page_divides_the_chunk,
    groups_divide,
    context_fits,
    graphs_are_padded,
)
