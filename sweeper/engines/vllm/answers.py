"""What a vLLM server reports of itself, its streamed answers, its requests. All that it says is untrusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.engines.base import Generation, HttpRequest, Identity, StreamedResponse
from sweeper.engines.events import json_object
from sweeper.engines.openai_stream import count, read_stream
from sweeper.engines.reported import scalar
from sweeper.engines.vllm.table import BARE_ENTRIES, ENTRIES, KNOWN_ENTRIES, MODEL
from sweeper.spec import FlagValue

INFO_PATH = "/server_info?config_format=json"
"""Of the development endpoints (VLLM_SERVER_DEV_MODE=1); elsewhere vLLM tells little more than its name."""

INFO_TIMEOUT_S = 120.0
"""Asked first, it collects the system's environment with a dozen programs (collect_env.py): more than 25 s
were seen on a busy host. Later it takes some milliseconds."""

_REPORTED: Mapping[str, tuple[str, str]] = {
    # Flag: the part of the configuration, and its name there.
    "block_size": ("cache_config", "block_size"),
    "data_parallel_size": ("parallel_config", "data_parallel_size"),
    "disable_custom_all_reduce": ("parallel_config", "disable_custom_all_reduce"),
    "enable_expert_parallel": ("parallel_config", "enable_expert_parallel"),
    "enforce_eager": ("model_config", "enforce_eager"),
    "gpu_memory_utilization": ("cache_config", "gpu_memory_utilization"),
    "kv_cache_dtype": ("cache_config", "cache_dtype"),
    "max_model_len": ("model_config", "max_model_len"),
    "max_num_batched_tokens": ("scheduler_config", "max_num_batched_tokens"),
    "max_num_seqs": ("scheduler_config", "max_num_seqs"),
    "pipeline_parallel_size": ("parallel_config", "pipeline_parallel_size"),
    "quantization": ("model_config", "quantization"),
    "seed": ("model_config", "seed"),
    "tensor_parallel_size": ("parallel_config", "tensor_parallel_size"),
    "trust_remote_code": ("model_config", "trust_remote_code"),
}
_OWN_NAMES = {entry: flag for flag, entry in ENTRIES.items()}


def parse_identity(info: Mapping[str, Any]) -> Identity:
    """Served name and model path. Raises ValueError when one is missing."""
    model = _part(_config(info), "model_config")
    name, path = model.get("served_model_name"), model.get("model")
    if isinstance(name, list) and len(name) == 1:
        name = name[0]
    if not isinstance(name, str) or not isinstance(path, str):
        raise ValueError(f"{INFO_PATH} does not name model_config.served_model_name and model_config.model")
    return Identity(nonce=name, model_path=path)


def parse_effective(info: Mapping[str, Any]) -> dict[str, FlagValue]:
    """The resolved settings under flag names, as far as they are known to mean what the flag does."""
    config = _config(info)
    found: dict[str, FlagValue] = {}
    for flag, (part, name) in _REPORTED.items():
        if (value := scalar(_part(config, part).get(name))) is not None:
            found[flag] = value
    dtype = scalar(_part(config, "model_config").get("dtype"))
    if isinstance(dtype, str):
        found["dtype"] = dtype.removeprefix("torch.")
    return found | _speculation(_part(config, "speculative_config"))


def _speculation(told: Mapping[str, Any]) -> dict[str, FlagValue]:
    """Entries of --speculative-config. Where nothing is loaded to draft, vLLM names the method as the model."""
    found: dict[str, FlagValue] = {}
    for entry, reported in told.items():
        flag, value = _OWN_NAMES.get(entry, f"spec_{entry}"), scalar(reported)
        if flag in KNOWN_ENTRIES and value is not None and not (flag in BARE_ENTRIES and not value):
            found[flag] = value
    if found.get(MODEL) == told.get("method"):
        found.pop(MODEL, None)
    return found


def _config(info: Mapping[str, Any]) -> Mapping[str, Any]:
    return _part(info, "vllm_config")


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def flush_request() -> HttpRequest:
    """Empties the prefix cache (development endpoint)."""
    return HttpRequest("POST", "/reset_prefix_cache")


def flushed(answer: bytes) -> bool:
    """Whether the cache was emptied; versions that say nothing did it."""
    try:
        return json_object(answer.decode("utf-8")).get("success") is not False
    except ValueError:
        return not answer.strip()


def parse_generation(response: StreamedResponse) -> Generation:
    """The answer. Raises ValueError when it is not complete and sensible. It does not tell what was drafted."""
    stream = read_stream(response)
    num_output = count(stream.usage, "completion_tokens")
    if num_output is None:
        raise ValueError("the answer does not say how many tokens it has (no usage)")
    return Generation(
        text="".join(stream.text),
        num_output_tokens=num_output,
        ttft_ms=stream.chunk_ms[0] if stream.chunk_ms else None,
        num_prompt_tokens=count(stream.usage, "prompt_tokens"),
        chunk_ms=tuple(stream.chunk_ms),
        finish_reason=stream.finish_reason,
    )
