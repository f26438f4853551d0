"""Settings of SGLang under which another text is to be expected, not only another order of rounding.

What only changes the order of sums (attention kernels, tensor parallelism, CUDA graphs, NCCL's algorithm,
deterministic inference) is not here: greedy outputs can still differ by it, where two tokens are nearly equally
likely, and comparing the outputs shows how often. Nor is anything that shapes drafts alone (draft model, its
quantization, token map, windows): the target verifies each of them, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sweeper.engines.sglang.env import BOOLEANS, plain_env
from sweeper.spec import FlagValue, ServerConfig

_THRESHOLDS = {
    # eagle_utils.py, eagle_sample; ngram_info.py up to 0.5.10; dflash_utils.py.
    "speculative_accept_threshold_single": "drafts that likely are accepted without the draw that exactness needs",
    "speculative_accept_threshold_acc": "drafts are accepted more often than their probability says",
}
_ONLY_SAMPLING = "it shows above temperature 0 only"

_REASONS: Mapping[str, str] = {
    # Flags that change what the target computes. Drafting has flags of its own, all of which begin otherwise.
    "enable_double_sparsity": "it attends to a part of the text only",
    "enable_hisparse": "it attends to a part of the text only",
    "lora_paths": "they change the weights",
    "enable_fp32_lm_head": "the last layer is computed in another precision",
    "enable_tf32_matmul": "float32 products are computed with 10 bits",
    "flashinfer_mxfp4_moe_precision": "experts are computed in another precision",
    "json_model_override_args": "it changes the model",
    "kt_max_deferred_experts_per_token": "it leaves experts out, or takes them later",
    "rl_quant_profile": "it changes the weights",
    "preferred_sampling_params": "it changes how tokens are drawn",
    "revision": "it may have other weights",
    "sampling_defaults": "it changes how tokens are drawn",
    "triton_attention_reduce_in_fp32": "attention is summed in another precision",
}
_OF_ONE_VALUE = {
    "attention_backend": ("dual_chunk_flash_attn", "it attends to a part of the text only"),
    "load_format": ("dummy", "the weights are random"),
}
_SPELLINGS = {"half": "float16", "float": "float32", "bf16": "bfloat16"}
_BY_NAME = re.compile(r"quant|dtype|fp8|fp4|int8|int4|torchao|sparsity|w4a4|w8a8")
_ITS_PRECISION = "numbers are kept or computed in another precision"
_SAME_PRECISION = re.compile(
    r"_backend$|^speculative_|^disable_flashinfer_cutlass_moe_fp4_allgather$|checkpoint|save"
)

_ENV_REASONS: Mapping[str, str] = {
    "NVIDIA_TF32_OVERRIDE": "it decides whether float32 products are computed with 10 bits",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "float32 products are computed with 10 bits",
    "SGLANG_MINIMAX_M3_INDEX_TOPK_FREQ": "layers attend to blocks that another one chose",
}
_ENV_BY_NAME = re.compile(r"FP8|FP4|INT8|QUANT|TF32")


def lossy_lines(config: ServerConfig, baseline: ServerConfig) -> list[str]:
    """Flags and variables by which `config` may write other text than `baseline`: name, value, why.

    Both canonical. A flag that both have with the same value makes no difference.
    """
    return [*_accepting(config.flags), *_computing(config.flags, baseline.flags), *_environment(config, baseline)]


def _accepting(flags: Mapping[str, FlagValue]) -> Iterator[str]:
    """Accept thresholds below 1; without speculation canonical flags have none."""
    for name, reason in _THRESHOLDS.items():
        value = flags.get(name, 1.0)
        if isinstance(value, int | float) and not isinstance(value, bool) and value < 1:
            yield f"{name}: {value:g}: {reason}; {_ONLY_SAMPLING}"


def _computing(flags: Mapping[str, FlagValue], baseline: Mapping[str, FlagValue]) -> Iterator[str]:
    """Flags that differ from the baseline's and change what the target computes."""
    for name in sorted({*flags, *baseline}):
        value, usual = flags.get(name), baseline.get(name)
        if _plain(name, value) == _plain(name, usual):
            continue
        special = _OF_ONE_VALUE.get(name.removeprefix("prefill_").removeprefix("decode_"))
        reason = _REASONS.get(name) or _precision(name)
        if special and special[0] in (value, usual):
            reason = special[1]
        if reason:
            yield f"{name}: {_shown(value)}: {reason} (the baseline: {_shown(usual)})"


def _plain(name: str, value: FlagValue | None) -> FlagValue | None:
    """The value with equal types of numbers spelt equally."""
    return _SPELLINGS.get(value, value) if name.endswith("dtype") and isinstance(value, str) else value


def _precision(name: str) -> str:
    """A version's new flags are judged by their names; those that choose a kernel keep the precision."""
    return _ITS_PRECISION if _BY_NAME.search(name) and not _SAME_PRECISION.search(name) else ""


def _environment(config: ServerConfig, baseline: ServerConfig) -> Iterator[str]:
    env, usual = plain_env(config.env), plain_env(baseline.env)
    for name in sorted({*env, *usual}):
        named = name.startswith(("SGLANG_", "SGL_")) and name not in BOOLEANS and _ENV_BY_NAME.search(name)
        reason = _ENV_REASONS.get(name, _ITS_PRECISION if named else "")
        if reason and env.get(name) != usual.get(name):
            yield f"{name}: {_shown(env.get(name))}: {reason} (the baseline: {_shown(usual.get(name))})"


def _shown(value: FlagValue | None) -> str:
    """The value, bounded; `not set` for none."""
    return "not set" if value is None else str(value)[:100]
