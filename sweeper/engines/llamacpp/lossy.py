"""Settings of llama.cpp under which another text is to be expected, not only another order of rounding.

Every draft is verified against the target's own choice, whatever wrote it. Threads, batch sizes, flash attention
and the number of drafts only change the order of sums: greedy outputs can differ by that where two tokens are
nearly equally likely (seen: after 399 characters of a story), which comparing the outputs shows.
"""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.spec import FlagValue, ServerConfig

_PRECISION = "the cache keeps numbers in another precision"
_DRAWN = "it changes how tokens are drawn"
_WEIGHTS = "it changes the model"
_POSITIONS = "it changes the positions that the model sees"
_CUT = "it forgets a part of the text"

_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("cache_type_k", "ctk", "cache_type_v", "ctv"), _PRECISION),
    **dict.fromkeys(("lora", "lora_scaled", "control_vector", "control_vector_scaled", "override_kv"), _WEIGHTS),
    **dict.fromkeys(("rope_scaling", "rope_scale", "rope_freq_base", "rope_freq_scale"), _POSITIONS),
    **dict.fromkeys(("yarn_orig_ctx", "yarn_ext_factor", "yarn_attn_factor"), _POSITIONS),
    **dict.fromkeys(("yarn_beta_slow", "yarn_beta_fast", "grp_attn_n", "grp_attn_w"), _POSITIONS),
    **dict.fromkeys(("context_shift", "keep", "swa_full"), _CUT),
    **dict.fromkeys(("samplers", "sampler_seq", "sampling_seq", "logit_bias", "grammar", "grammar_file"), _DRAWN),
    **dict.fromkeys(("json_schema", "json_schema_file", "min_p", "top_k", "top_p", "typical"), _DRAWN),
    **dict.fromkeys(("repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty"), _DRAWN),
    **dict.fromkeys(("top_nsigma", "dynatemp_range", "dynatemp_exp"), _DRAWN),
    **dict.fromkeys(("chat_template", "chat_template_file", "chat_template_kwargs", "jinja"), "other prompts"),
    **dict.fromkeys(("reasoning_budget", "reasoning_format"), "other prompts, or less text of the answer"),
}
_DRAWING = ("dry_", "xtc_", "mirostat")
_SPELLINGS = {"ctk": "cache_type_k", "ctv": "cache_type_v"}
_DEFAULTS = {"cache_type_k": "f16", "cache_type_v": "f16"}


def lossy_lines(config: ServerConfig, baseline: ServerConfig) -> list[str]:
    """Flags by which `config` may write other text than `baseline`: name, value, why. Both canonical."""
    ours, usual = _spelt(config.flags), _spelt(baseline.flags)
    lines = []
    for name in sorted({*ours, *usual}):
        reason = _REASONS.get(name) or (_DRAWN if name.startswith(_DRAWING) else "")
        default = _DEFAULTS.get(name)
        value, other = ours.get(name, default), usual.get(name, default)
        if reason and value != other:
            lines.append(f"{name}: {_shown(value)}: {reason} (the baseline: {_shown(other)})")
    return lines


def _spelt(flags: Mapping[str, FlagValue]) -> dict[str, FlagValue]:
    """`flags` under one name each."""
    return {_SPELLINGS.get(name, name): value for name, value in flags.items()}


def _shown(value: FlagValue | None) -> str:
    """The value, bounded; `not set` for none."""
    return "not set" if value is None else str(value)[:100]
