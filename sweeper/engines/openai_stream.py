"""A streamed (chat) completion in the shape of OpenAI, which several servers speak. All of it is untrusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.engines.base import HttpRequest, StreamedResponse
from sweeper.engines.events import events, json_object
from sweeper.workload_spec import Prompt, WorkloadSpec

SHOWN = 300
"""Characters of foreign text that a message or a piece of evidence repeats at most."""

TEXTS = ("reasoning_content", "reasoning", "content", "text")
"""Where a piece of the answer may stand: what a model thinks costs as much time as what it says."""


def completion_request(
    prompt: Prompt, workload: WorkloadSpec, max_tokens: int, own: Mapping[str, object] | None = None
) -> HttpRequest:
    """A streamed (chat) completion, under the chat template that the server applies; `own`: fields of its own."""
    asked: dict[str, object] = {"prompt": prompt.text}
    if workload.chat:
        asked = {"messages": [{"role": "user", "content": prompt.text}]}
    body = {
        **asked,
        "max_tokens": max_tokens,
        "ignore_eos": workload.ignore_eos,
        "temperature": workload.temperature,
        "seed": workload.seed,
        **(own or {}),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return HttpRequest("POST", "/v1/chat/completions" if workload.chat else "/v1/completions", body)


@dataclass
class Stream:
    """What the chunks of one answer have said so far."""

    text: list[str] = field(default_factory=list)
    chunk_ms: list[float] = field(default_factory=list)
    finish_reason: str = ""
    done: bool = False
    num_chunks: int = 0
    usage: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, Any] = field(default_factory=dict)


def read_stream(response: StreamedResponse) -> Stream:
    """All chunks. Raises ValueError for an error, another shape, or a stream that ended early."""
    stream = Stream()
    for at_ms, payload in events(response):
        if payload == "[DONE]":
            stream.done = True
        else:
            _take_chunk(stream, at_ms, json_object(payload))
    if not stream.done or not stream.finish_reason:
        raise ValueError(f"the stream ended early, after {stream.num_chunks} chunks without [DONE]")
    return stream


def _take_chunk(stream: Stream, at_ms: float, chunk: Mapping[str, Any]) -> None:
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
        pieces = [delta.get(name) for name in TEXTS]
        text = "".join(piece for piece in pieces if isinstance(piece, str))
        if text:
            stream.chunk_ms.append(at_ms)
        stream.text.append(text)
        if isinstance(reason := choice.get("finish_reason"), str):
            stream.finish_reason = reason[:SHOWN].encode("utf-8", "backslashreplace").decode()
    for name in ("usage", "timings"):
        if isinstance(value := chunk.get(name), dict):
            setattr(stream, name, value)


def count(data: Mapping[str, Any], name: str) -> int | None:
    """A count, None when absent. Raises ValueError when it is not one."""
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {str(value)[:SHOWN]!r}, not a count")
    return value
