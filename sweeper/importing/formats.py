"""The load generators' own entries under the names of roles (columns.py).

Nothing is added that they do not say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sweeper.engines.registry import engine_for
from sweeper.importing.files import SGLANG_SERVING, SPECULATIVE, VLLM_SERVING, ResultFile, Row

Cells = dict[str, Any]

FLAG = "flag:"
"""Before the name of a flag that a file tells by itself, under the engine's own name."""

_TOLD_FLAGS = (
    "speculative_algorithm",
    "speculative_draft_model_path",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "tp_size",
    "dp_size",
    "attention_backend",
    "disable_cuda_graph",
    "disable_overlap_schedule",
    "kv_cache_dtype",
    "quantization",
)
"""Of the hundreds of settings that /server_info tells: what people vary and no start sets anew."""

_UNSET = {"tp_size": 1, "dp_size": 1, "kv_cache_dtype": "auto"}
"""What /server_info tells of a flag that nobody set."""

DEFAULT_ENGINE = {SPECULATIVE: "sglang", SGLANG_SERVING: "sglang", VLLM_SERVING: "vllm"}
"""Whose results a format usually holds. vLLM's client can load any server: then the engine must be said."""


def told(file: ResultFile) -> tuple[Row, ...]:
    """The rows of a file under the names of roles; a CSV's stay as they are."""
    adapt = _ADAPT.get(file.kind)
    return tuple(Row(row.line, adapt(dict(row.cells))) for row in file.rows) if adapt else file.rows


def _speculative(cells: Cells) -> Cells:
    """`speed` is accept_length over the 20th percentile of the step time: what one stream decodes.

    `acc_length` is written as 1.0 where nothing was drafted. The script starts every drafting server with EAGLE.
    """
    drafts = cells.get("steps") not in (0, "0", None)
    named = {
        "concurrency": cells.get("batch_size"),
        "num_steps": cells.get("steps"),
        "topk": cells.get("topk"),
        "draft_tokens": cells.get("num_draft_tokens"),
        "decode_throughput": cells.get("speed"),
        "accept_length": cells.get("acc_length") if drafts else None,
        "algorithm": "EAGLE" if drafts else None,
    }
    known = {"batch_size", "steps", "topk", "num_draft_tokens", "speed", "acc_length"}
    return _given(named) | {name: value for name, value in cells.items() if name not in known}


def _sglang_serving(cells: Cells) -> Cells:
    """The configuration is in `server_info`, which versions since 0.5.6 or so write; older ones do not tell it."""
    info = cells.pop("server_info", None)
    named = {
        "throughput": cells.pop("output_throughput", None),
        "num_requests": cells.pop("completed", None),
        "num_output_tokens": cells.pop("total_output_tokens", None),
        "duration_s": cells.pop("duration", None),
        "concurrency": cells.pop("max_concurrency", None),
        "num_under_way": cells.pop("concurrency", None),
        "workload": cells.pop("dataset_name", None),
    }
    return _given(named) | cells | (_server(info) if isinstance(info, Mapping) else {})


def _server(info: Mapping[str, Any]) -> Cells:
    """What the server reported of itself."""
    effective = engine_for("sglang").effective(info)
    flags = {FLAG + n: effective[n] for n in _TOLD_FLAGS if n in effective and effective[n] != _UNSET.get(n)}
    facts = {"engine_version": info.get("version"), "model": effective.get("model_path")}
    return flags | _given(facts)


def _vllm_serving(cells: Cells) -> Cells:
    """Its counters are differences over the run, so acceptance is exact; the rate is in percent."""
    named = {
        "throughput": cells.pop("output_throughput", None),
        "accept_length": cells.pop("spec_decode_acceptance_length", None),
        "accept_rate_pct": cells.pop("spec_decode_acceptance_rate", None),
        "num_verify_steps": cells.pop("spec_decode_num_drafts", None),
        "num_drafted_tokens": cells.pop("spec_decode_draft_tokens", None),
        "num_accepted_tokens": cells.pop("spec_decode_accepted_tokens", None),
        "positions": cells.pop("spec_decode_per_position_acceptance_rates", None),
        "num_requests": cells.pop("completed", None),
        "num_output_tokens": cells.pop("total_output_tokens", None),
        "duration_s": cells.pop("duration", None),
        "concurrency": cells.pop("max_concurrency", None),
        "model": cells.pop("model_id", None),
    }
    return _given(named) | cells


def _given(cells: Mapping[str, Any]) -> Cells:
    return {name: value for name, value in cells.items() if value is not None}


_ADAPT: Mapping[str, Callable[[Cells], Cells]] = {
    SPECULATIVE: _speculative,
    SGLANG_SERVING: _sglang_serving,
    VLLM_SERVING: _vllm_serving,
}
