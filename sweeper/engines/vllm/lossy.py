"""Settings of vLLM under which another text is to be expected, not only another order of rounding.

Drafts are verified against the target's own choice, whatever wrote them and under whatever precision of their own
(`spec_quantization`, `spec_kv_cache_dtype`); block verification keeps the distribution, too. Attention backends,
parallelism, CUDA graphs and compiling only change the order of sums.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sweeper.engines.vllm.table import DEFAULTS
from sweeper.spec import FlagValue, ServerConfig

_ITS_PRECISION = "numbers are kept or computed in another precision"
_WEIGHTS = "it changes the weights"
_DRAWN = "it changes how tokens are drawn"

_REASONS: Mapping[str, str] = {
    "spec_rejection_sample_method": "drafts are accepted at a given rate, whatever the model says",
    "calculate_kv_scales": _ITS_PRECISION,
    "enable_lora": _WEIGHTS,
    "lora_modules": _WEIGHTS,
    "revision": "it may have other weights",
    "hf_overrides": "it changes the model",
    "hf_config_path": "it changes the model",
    "generation_config": _DRAWN,
    "override_generation_config": _DRAWN,
    "logits_processors": _DRAWN,
    "chat_template": "other prompts",
    "tokenizer": "other prompts",
    "typical_acceptance_sampler_posterior_threshold": "drafts are accepted that the target would not write",
    "typical_acceptance_sampler_posterior_alpha": "drafts are accepted that the target would not write",
    "spec_decoding_acceptance_method": "drafts are accepted that the target would not write",
}
_OF_ONE_VALUE = {
    "spec_rejection_sample_method": "synthetic",
    "load_format": "dummy",
}
_BY_NAME = re.compile(r"quant|dtype|fp8|fp4|int8|int4|sparse")
_ENV_BY_NAME = re.compile(r"FP8|FP4|INT8|QUANT|TF32|SPARSE")
_SPELLINGS = {"half": "float16", "float": "float32", "fp8": "fp8_e4m3"}


def lossy_lines(config: ServerConfig, baseline: ServerConfig) -> list[str]:
    """Flags and variables by which `config` may write other text than `baseline`: name, value, why. Canonical."""
    return [*_flags(config.flags, baseline.flags), *_environment(config.env, baseline.env)]


def _flags(flags: Mapping[str, FlagValue], baseline: Mapping[str, FlagValue]) -> Iterator[str]:
    for name in sorted({*flags, *baseline}):
        value, usual = (each.get(name, DEFAULTS.get(name)) for each in (flags, baseline))
        if _spelt(value) == _spelt(usual):
            continue
        if (special := _OF_ONE_VALUE.get(name)) and special not in (value, usual):
            continue
        if reason := _reason(name):
            yield f"{name}: {_shown(value)}: {reason} (the baseline: {_shown(usual)})"


def _reason(name: str) -> str:
    """A version's new flags are judged by their names; those of drafts alone change no text."""
    if name == "load_format":
        return "the weights are random"
    if name in _REASONS:
        return _REASONS[name]
    return _ITS_PRECISION if _BY_NAME.search(name) and not name.startswith("spec_") else ""


def _environment(env: Mapping[str, str], usual: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*env, *usual}):
        counts = name.startswith(("VLLM_", "NVIDIA_", "TORCH_ALLOW_")) and _ENV_BY_NAME.search(name)
        if counts and env.get(name) != usual.get(name):
            yield f"{name}: {_shown(env.get(name))}: {_ITS_PRECISION} (the baseline: {_shown(usual.get(name))})"


def _spelt(value: FlagValue | None) -> FlagValue | None:
    return _SPELLINGS.get(value, value) if isinstance(value, str) else value


def _shown(value: FlagValue | None) -> str:
    """The value, bounded; `not set` for none."""
    return "not set" if value is None else str(value)[:100]
