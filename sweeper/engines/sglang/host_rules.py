"""Rules on GPUs, pages, contexts and graphs, in the form of rules.py; listed in HOST_RULES."""

from __future__ import annotations

from sweeper.engines.sglang.backends import backends, decode_backend, prefill_backend
from sweeper.engines.sglang.case import Case
from sweeper.engines.sglang.env import is_true
from sweeper.engines.sglang.rules import Rule

_BLACKWELL = frozenset({"sm100", "sm120"})


def gpu_can(case: Case) -> str:
    """Which GPUs a backend runs on. trtllm_* and cutedsl_mla: run; fa3, flashmla, cutlass_mla: read (at load)."""
    if not case.gpu:
        return ""
    serving = {case.text("attention_backend"), case.text("decode_attention_backend")}
    for backend in ("trtllm_mla", "tokenspeed_mla"):
        if backend in serving and case.gpu not in _BLACKWELL:
            return f"{backend}: needs a Blackwell GPU, not {case.gpu}"
    if "cutedsl_mla" in backends(case) and case.gpu != "sm100":
        return f"cutedsl_mla: needs sm100, not {case.gpu}"
    if reason := _trtllm_mha_gpu(case):
        return reason
    if "cutlass_mla" in serving and case.gpu != "sm100":
        return f"cutlass_mla: needs sm100, not {case.gpu}"
    if "flashmla" in serving and case.gpu not in ("sm90", "sm100"):
        return f"flashmla: needs sm90 or sm100, not {case.gpu}"
    return _fa3_gpu(case)


def _trtllm_mha_gpu(case: Case) -> str:
    """sm100 only up to 0.5.9; then decode on sm90 and sm120 too, prefill on those from 0.5.19 on."""
    if "trtllm_mha" not in backends(case):
        return ""
    decoding = ("sm100",) if not case.version.since(0, 5, 10) else ("sm90", "sm100", "sm120")
    prefilling = decoding if case.version.since(0, 5, 19) else ("sm100",)
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


def mla_cache_type(case: Case) -> str:
    """trtllm_mla, cutedsl_mla and tokenspeed_mla take some types of the KV cache only. Run."""
    serving = {case.text("attention_backend"), case.text("decode_attention_backend")}
    dtype = case.text("kv_cache_dtype")
    able = {"fp8_e4m3", "bf16", "auto"} | (set() if case.version.since(0, 5, 21) else {"fp4_e2m1"})
    if "trtllm_mla" in serving and dtype and dtype not in able:
        return f"kv_cache_dtype {dtype}: trtllm_mla takes {', '.join(sorted(able))}"
    if "cutedsl_mla" in backends(case) and dtype and dtype not in able | {"bfloat16"}:
        return f"kv_cache_dtype {dtype}: cutedsl_mla takes {', '.join(sorted(able))}"
    if "tokenspeed_mla" in serving and dtype != "fp8_e4m3":
        return f"kv_cache_dtype {dtype or 'auto'}: tokenspeed_mla takes fp8_e4m3 only"
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
    """M5: no padding of CUDA graphs with torch compile: an assertion (0.5.12 and later). Run."""
    both = case.on("disable_cuda_graph_padding") and case.on("enable_torch_compile")
    if both and case.version.since(0, 5, 12):
        return "disable_cuda_graph_padding: not with enable_torch_compile"
    return ""


HOST_RULES: tuple[Rule, ...] = (
    gpu_can,
    mla_cache_type,
    page_divides_the_chunk,
    groups_divide,
    context_fits,
    graphs_are_padded,
)
