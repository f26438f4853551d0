"""SGLang's pages about itself: `/metrics` and `/server_info`. Both are untrusted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from sweeper.engines.base import Counters, Identity
from sweeper.engines.reported import scalar
from sweeper.spec import FlagValue
from sweeper.text import plain

MAX_ENTRIES = 800
"""More than any version reports (0.5.15.post1: 428, of which 290 hold a value)."""

_VERIFY_CALLS = "sglang:spec_verify_calls_total"

_SECRET = re.compile(r"api_key|password|secret|credential")

# What an internal state holds besides settings: figures that change with every request.
_MEASURED = frozenset({"last_gen_throughput", "avg_spec_accept_length", "status", "launch_command"})


def parse_counters(text: str) -> Counters:
    """The verify steps since the start (0.5.15 and later count them); empty when the page has none.

    Nothing else on that page is a counter of speculation: `spec_accept_length` and `spec_accept_rate` are gauges
    of the last 40 decode steps. Only the lines in question are parsed: a page has a thousand others.
    """
    lines = [line for line in text.splitlines() if line.startswith(_VERIFY_CALLS)]
    values = []
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            values += [s.value for s in family.samples if s.name == _VERIFY_CALLS]
    except (ValueError, KeyError, IndexError, TypeError):  # what the parser raises on text that is not its format
        return Counters()
    if not values or not all(0 <= value < math.inf for value in values):
        return Counters()
    return Counters(num_drafts=int(sum(values)))


def parse_identity(info: Mapping[str, Any]) -> Identity:
    """Who answers: `served_model_name` carries the nonce. Raises ValueError when it or the path is missing."""
    nonce, path = info.get("served_model_name"), info.get("model_path")
    if not isinstance(nonce, str) or not isinstance(path, str):
        raise ValueError("/server_info does not name served_model_name and model_path")
    return Identity(nonce=nonce, model_path=path)


def parse_effective(info: Mapping[str, Any]) -> dict[str, FlagValue]:
    """The settings in force, under flag names: what has a value, without secrets; lists as text, `1 2 4`.

    The scheduler's own copy (`internal_states`) wins over the front's, which still has what the scheduler changed.
    Added to them: max_total_num_tokens, effective_max_running_requests_per_dp, memory_usage_* (GiB and tokens).
    """
    state = _first_state(info)
    found: dict[str, FlagValue] = {}
    for source in (info, state):
        for name, value in source.items():
            if len(found) < MAX_ENTRIES and _is_setting(name) and (kept := _kept(value)) is not None:
                found[name] = kept
    usage = state.get("memory_usage")
    for name, value in usage.items() if isinstance(usage, dict) else ():
        if _is_setting(name) and len(found) < MAX_ENTRIES and (kept := _kept(value)) is not None:
            found[f"memory_usage_{name}"] = kept
    config = state.get("cuda_graph_config", info.get("cuda_graph_config"))
    return {**found, **dict(_graphs(config))}


def _first_state(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first data-parallel rank's internal state; empty when there is none."""
    states = info.get("internal_states")
    first = states[0] if isinstance(states, list) and states else None
    return first if isinstance(first, dict) else {}


def _is_setting(name: object) -> bool:
    return (
        isinstance(name, str)
        and len(name) <= 100
        and name.isidentifier()
        and not name.startswith("_")
        and name not in _MEASURED
        and not _SECRET.search(name)
    )


def _kept(value: object) -> FlagValue | None:
    """A value that a record can hold, a list as text; None for everything else."""
    if isinstance(value, list) and value and all(isinstance(item, str | int | float) for item in value):
        return plain(
            " ".join(str(item) for item in value[:1000] if not isinstance(item, int) or abs(item) < 2**63)
        )
    return scalar(value)


def _graphs(config: object) -> Iterator[tuple[str, FlagValue]]:
    """The resolved CUDA graphs (0.5.15 and later), under the flags that ask for them.

    The plain flags lie: `disable_cuda_graph` stays false when both phases were disabled by other flags, and
    stays true when a backend overrules it.
    """
    if not isinstance(config, dict):
        return
    phases = {name: config[name] for name in ("decode", "prefill") if isinstance(config.get(name), dict)}
    disabled = {name: phase.get("backend") == "disabled" for name, phase in phases.items()}
    for name, phase in phases.items():
        if isinstance(phase.get("backend"), str):
            yield f"cuda_graph_backend_{name}", plain(phase["backend"])
            yield f"disable_{name}_cuda_graph", disabled[name]
        for part in ("max_bs", "bs") if not disabled[name] else ():
            if (kept := _kept(phase.get(part))) is not None:
                yield f"cuda_graph_{part}_{name}", kept
    if len(disabled) == 2:
        yield "disable_cuda_graph", all(disabled.values())
