"""A model's config.json, read on the host and never trusted: what of it vLLM's rules need."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sweeper.engines.base import HostFacts
from sweeper.engines.vllm.table import MODEL
from sweeper.spec import FlagValue

_MAX_CHARS = 1024 * 1024
_MAX_NUMBER = 2**31 - 1


@dataclass(frozen=True)
class Model:
    """What a config.json says; None where it does not."""

    architecture: str = ""
    vocab_size: int | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    num_heads: int | None = None
    context_length: int | None = None

    @property
    def is_eagle3(self) -> bool:
        """Whether vLLM takes it for a draft of the third EAGLE (transformers_utils/configs/eagle.py)."""
        return self.architecture.startswith("Eagle3") or self.architecture.endswith("Eagle3")


def model_at(path: object, facts: HostFacts) -> Model | None:
    """The model in a folder of the host, as far as it was read."""
    text = facts.files.get(_config_path(path)) if isinstance(path, str) else None
    return read_model(text) if text else None


def host_files(flags: Mapping[str, Sequence[FlagValue]], model_path: str) -> tuple[str, ...]:
    """The config.json of the target and of every draft that is a local folder, each once."""
    drafts = [value for value in flags.get(MODEL, ()) if isinstance(value, str)]
    return tuple(dict.fromkeys(path for model in (model_path, *drafts) if (path := _config_path(model))))


def _config_path(model_path: str) -> str:
    if not model_path.startswith("/") or "\0" in model_path or model_path.endswith(".gguf"):
        return ""
    return model_path.rstrip("/") + "/config.json"


@lru_cache(maxsize=64)
def read_model(text: str) -> Model:
    """The model that this config.json describes; one of which nothing is known when it cannot be read."""
    try:
        config = json.loads(text) if len(text) <= _MAX_CHARS else None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        return Model()
    nested = config.get("text_config")
    inner = {**config, **nested} if isinstance(nested, dict) else config
    names = config.get("architectures")
    first = names[0] if isinstance(names, list) and names else ""
    return Model(
        architecture=first[:200] if isinstance(first, str) else "",
        vocab_size=_number(inner, "vocab_size"),
        hidden_size=_number(inner, "hidden_size"),
        num_layers=_number(inner, "num_hidden_layers"),
        num_heads=_number(inner, "num_attention_heads"),
        context_length=None if _is_stretched(inner) else _number(inner, "max_position_embeddings"),
    )


def _is_stretched(config: Mapping[str, Any]) -> bool:
    """Whether positions are scaled, so that the context is longer than they are many."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    return isinstance(scaling, dict) and "factor" in scaling


def _number(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if type(value) is int and 0 < value <= _MAX_NUMBER else None
