"""A model's config.json, read on the host and never trusted: what of it the rules need."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sweeper.spec import FlagValue

_MAX_CHARS = 1024 * 1024
_MAX_NUMBER = 2**31 - 1

# The keys that SGLang tries, in its order (hf_transformers_utils.py, CONTEXT_LENGTH_KEYS).
_CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")


@dataclass(frozen=True)
class Model:
    """What a config.json says; None where it does not. `error`: why it could not be understood."""

    architecture: str = ""
    is_mla: bool = False
    hidden_size: int | None = None
    vocab_size: int | None = None
    draft_vocab_size: int | None = None
    target_hidden_size: int | None = None
    num_layers: int | None = None
    num_nextn_layers: int | None = None
    block_size: int | None = None
    context_length: int | None = None
    has_eagle_config: bool = False
    error: str = ""

    @property
    def is_eagle3(self) -> bool:
        """Whether this is a draft of the third EAGLE: by its architecture, or by what only such a config has."""
        return "Eagle3" in self.architecture or self.draft_vocab_size is not None or self.has_eagle_config

    @property
    def is_gemma4_assistant(self) -> bool:
        """Whether SGLang runs this draft as FROZEN_KV_MTP (speculative_hook.py, 0.5.12 and later)."""
        return self.architecture in ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")


def config_path(model_path: str) -> str:
    """Where a local model's config.json is; empty for what is no absolute folder (a name of the hub, a file)."""
    if not model_path.startswith("/") or "\0" in model_path or model_path.endswith(".gguf"):
        return ""
    return model_path.rstrip("/") + "/config.json"


def host_files(flags: Mapping[str, Sequence[FlagValue]], model_path: str) -> tuple[str, ...]:
    """The config.json of the target and of every draft that is a local folder, each once."""
    drafts = [value for value in flags.get("speculative_draft_model_path", ()) if isinstance(value, str)]
    return tuple(dict.fromkeys(path for model in (model_path, *drafts) if (path := config_path(model))))


@lru_cache(maxsize=64)
def read_model(text: str) -> Model:
    """The model that this config.json describes. Never raises."""
    if len(text) > _MAX_CHARS:
        return Model(error="is larger than any config.json")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return Model(error="is not JSON")
    if not isinstance(config, dict):
        return Model(error="is not a JSON object")
    nested = config.get("text_config")
    inner = {**config, **nested} if isinstance(nested, dict) else config
    architecture = _architecture(config)
    return Model(
        architecture=architecture,
        # DeepSeek-V4 keeps such a key and is not served by an MLA backend (model_config.py).
        is_mla=_number(inner, "kv_lora_rank") is not None and not architecture.startswith("DeepseekV4"),
        hidden_size=_number(inner, "hidden_size"),
        vocab_size=_number(inner, "vocab_size"),
        draft_vocab_size=_number(inner, "draft_vocab_size"),
        target_hidden_size=_number(inner, "target_hidden_size"),
        num_layers=_number(inner, "num_hidden_layers"),
        num_nextn_layers=_number(inner, "num_nextn_predict_layers", low=0),
        block_size=_block_size(config),
        context_length=_context_length(inner),
        has_eagle_config=isinstance(config.get("eagle_config"), dict),
    )


def _architecture(config: Mapping[str, Any]) -> str:
    names = config.get("architectures")
    first = names[0] if isinstance(names, list) and names else ""
    return first[:200] if isinstance(first, str) else ""


def _number(config: Mapping[str, Any], key: str, low: int = 1) -> int | None:
    value = config.get(key)
    return value if type(value) is int and low <= value <= _MAX_NUMBER else None


def _block_size(config: Mapping[str, Any]) -> int | None:
    """DFLASH's block: in its own section, or at the top (dflash_utils.py, parse_dflash_draft_config)."""
    section = config.get("dflash_config")
    own = _number(section, "block_size") if isinstance(section, dict) else None
    return own or _number(config, "block_size")


def _context_length(config: Mapping[str, Any]) -> int | None:
    """As SGLang derives it: the first key that is there, times the rope factor where that one counts.

    Source: hf_transformers_utils.py, get_context_length; 2048 when no key is there.
    """
    rope = config.get("rope_scaling")
    factor = 1.0
    if (
        isinstance(rope, dict)
        and "original_max_position_embeddings" not in rope
        and rope.get("rope_type") != "llama3"
    ):
        given = rope.get("factor", 1)
        factor = float(given) if isinstance(given, int | float) and 0 < given < 10_000 else 1.0
    for key in _CONTEXT_KEYS:
        if key in config and config[key] is not None:
            number = _number(config, key)
            return int(factor * number) if number else None
    return 2048
