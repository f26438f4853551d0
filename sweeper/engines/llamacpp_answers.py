"""Reading what a llama.cpp server says: streamed answers, the metrics page, the log. All of it is untrusted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from sweeper.engines.base import Counters, Diagnosis, Generation, StreamedResponse
from sweeper.engines.events import events, json_object
from sweeper.errors import FailureKind

SHOWN = 300
"""Characters of foreign text that a message or a piece of evidence repeats at most."""

MAX_POSITIONS = 1024
"""Longest draft: the server refuses a larger size_m."""


@dataclass
class _Stream:
    """What the chunks of one answer have said so far."""

    text: list[str] = field(default_factory=list)
    chunk_ms: list[float] = field(default_factory=list)
    finish_reason: str = ""
    done: bool = False
    num_chunks: int = 0
    usage: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, Any] = field(default_factory=dict)


def parse_stream(response: StreamedResponse) -> Generation:
    """The answer of /v1/chat/completions with `stream`. Raises ValueError when it is not complete and sensible.

    llama.cpp leaves `draft_n` out when nothing was drafted, so 0 is known only if its timings are there.
    """
    stream = _Stream()
    for at_ms, payload in events(response):
        if payload == "[DONE]":
            stream.done = True
        else:
            _take_chunk(stream, at_ms, json_object(payload))
    if not stream.done or not stream.finish_reason:
        raise ValueError(f"the stream ended early, after {stream.num_chunks} chunks without [DONE]")
    num_output = _count(stream.usage, "completion_tokens")
    if num_output is None and (num_output := _count(stream.timings, "predicted_n")) is None:
        raise ValueError("the answer does not say how many tokens it has (neither usage nor timings)")
    drafted, accepted = _count(stream.timings, "draft_n"), _count(stream.timings, "draft_n_accepted")
    if stream.timings:
        drafted, accepted = drafted or 0, accepted or 0
        if not accepted <= drafted:
            raise ValueError(f"the answer claims {accepted} accepted of {drafted} drafted tokens")
    prompt_ms, decode_ms = (_duration(stream.timings, name) for name in ("prompt_ms", "predicted_ms"))
    return Generation(
        text="".join(stream.text),
        num_output_tokens=num_output,
        ttft_ms=stream.chunk_ms[0] if stream.chunk_ms else None,
        num_prompt_tokens=_count(stream.usage, "prompt_tokens"),
        num_drafted_tokens=drafted,
        num_accepted_tokens=accepted,
        server_decode_ms=decode_ms,
        server_e2e_ms=None if prompt_ms is None or decode_ms is None else prompt_ms + decode_ms,
        chunk_ms=tuple(stream.chunk_ms),
        finish_reason=stream.finish_reason,
    )


def _take_chunk(stream: _Stream, at_ms: float, chunk: Mapping[str, Any]) -> None:
    """Add one chunk. Raises ValueError for an error object or a chunk of another shape."""
    if "error" in chunk:
        raise ValueError(f"the server answered with an error: {json.dumps(chunk['error'])[:SHOWN]}")
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        raise ValueError(f"a chunk without choices: {json.dumps(chunk)[:SHOWN]}")
    stream.num_chunks += 1
    for choice in choices[:1]:
        # A plain completion has its text beside the choice's other fields.
        delta = choice.get("delta", choice if "text" in choice else None) if isinstance(choice, dict) else None
        if not isinstance(delta, dict):
            raise ValueError(f"a choice without delta or text: {json.dumps(choice)[:SHOWN]}")
        pieces = (delta.get("reasoning_content"), delta.get("content"), delta.get("text"))
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        if text:
            stream.chunk_ms.append(at_ms)
        stream.text.append(text)
        if isinstance(reason := choice.get("finish_reason"), str):
            stream.finish_reason = reason[:SHOWN].encode("utf-8", "backslashreplace").decode()
    for name in ("usage", "timings"):
        if isinstance(value := chunk.get(name), dict):
            setattr(stream, name, value)


def _count(data: Mapping[str, Any], name: str) -> int | None:
    """A count, None when absent. Raises ValueError when it is not one."""
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {str(value)[:SHOWN]!r}, not a count")
    return value


def _duration(data: Mapping[str, Any], name: str) -> float | None:
    """A duration, None when absent. Raises ValueError when it is not one."""
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ValueError(f"{name} is {str(value)[:SHOWN]!r}, not a duration")
    return float(value)


def parse_counters(text: str) -> Counters:
    """The speculation totals on the page /metrics; empty when the page is not one."""
    prefix = "llamacpp:spec_decode_num_"
    totals: dict[str, int] = {}
    positions: dict[int, int] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not sample.name.startswith(prefix) or not (0 <= sample.value < math.inf):
                    continue
                name = sample.name.removeprefix(prefix)
                if name == "accepted_tokens_per_pos_total":
                    positions[int(sample.labels["position"])] = int(sample.value)
                else:
                    totals[name] = int(sample.value)
    except (ValueError, KeyError, IndexError, TypeError):  # what the parser raises on text that is not its format
        return Counters()
    longest = max((position for position in positions if 0 <= position < MAX_POSITIONS), default=-1)
    return Counters(
        num_drafts=totals.get("drafts_total"),
        num_draft_tokens=totals.get("draft_tokens_total"),
        num_accepted_tokens=totals.get("accepted_tokens_total"),
        accepted_per_position=tuple(positions.get(position, 0) for position in range(longest + 1)),
    )


@dataclass(frozen=True)
class _Sign:
    """Log lines that match one of `patterns` show a failure of this kind."""

    kind: FailureKind
    message: str
    patterns: tuple[str, ...]

    def evidence(self, lines: list[str]) -> tuple[str, ...]:
        """The first lines that match, bounded."""
        pattern = re.compile("|".join(self.patterns), re.IGNORECASE)
        return tuple(line.strip()[:SHOWN] for line in lines if pattern.search(line))[:5]


_SIGNS = (
    # The first sign with evidence counts: causes stand before their consequences.
    _Sign(
        FailureKind.OUT_OF_MEMORY,
        "the server ran out of memory",
        # Not "failed to fit params to free device memory": a warning, after which the load goes on.
        ("out of memory", "bad_alloc", r"(failed|unable) to allocate .*buffer", "ErrorOutOfDeviceMemory"),
    ),
    _Sign(
        FailureKind.UNSUPPORTED,
        "the server refused an argument",
        (
            "error: (invalid |unknown )?argument",
            "error while handling argument",
            "argument has been removed",
            "unknown speculative type",
        ),
    ),
    _Sign(FailureKind.UNSUPPORTED, "the draft model could not be loaded", ("failed to load draft model",)),
    _Sign(
        FailureKind.UNSUPPORTED,
        "the server cannot speculate this way with these models",
        (
            "failed to initialize speculative",
            "doesn't contain MTP layers",
            "failed to create MTP context",
            "no target_layer_ids",
            "vocabs are not compatible",
        ),
    ),
    _Sign(FailureKind.HOST_DIRTY, "the server's port was taken", ("couldn't bind",)),
    _Sign(FailureKind.SERVER_CRASH, "the model could not be loaded", ("failed to load model",)),
    _Sign(FailureKind.SERVER_CRASH, "the server aborted itself", ("GGML_ASSERT", "terminate called")),
)

_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
"""Signals by which a process ends through its own fault. SIGKILL is not one: anybody may have sent it."""


def diagnose_log(log: str, exit_code: int | None) -> Diagnosis | None:
    """What went wrong; None when neither the log nor the exit code shows it."""
    lines = log.splitlines()
    for sign in _SIGNS:
        if evidence := sign.evidence(lines):
            return Diagnosis(sign.kind, sign.message, evidence)
    if exit_code is not None and (name := _SIGNALS.get(exit_code - 128)):
        last = tuple(line.strip()[:SHOWN] for line in lines[-5:])
        return Diagnosis(FailureKind.SERVER_CRASH, f"the server died of {name} (exit code {exit_code})", last)
    return None
