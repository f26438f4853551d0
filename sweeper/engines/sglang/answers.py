"""SGLang's `/generate`: what is asked, and what its streamed answer says. All of the answer is untrusted.

Checked against the sources of 0.5.8, 0.5.10.post1, 0.5.15.post1 and 0.5.23 and against a real 0.5.15.post1.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeper.engines.base import Generation, HttpRequest, StreamedResponse
from sweeper.engines.events import events, json_object
from sweeper.engines.sglang.acceptance import acceptance, count
from sweeper.text import plain
from sweeper.workload_spec import Prompt, WorkloadSpec

_MAX_S = 1e6
"""No request takes longer: a larger figure is nonsense."""


def request_body(prompt: Prompt, workload: WorkloadSpec, max_tokens: int) -> dict[str, Any]:
    """The JSON for POST /generate: tokens when the chat template was applied beforehand, else the text.

    The seed has an effect under `enable_deterministic_inference` only. All versions from 0.5.8 to 0.5.23 know
    these parameters; one that a version does not know would fail the request.
    """
    asked: dict[str, Any] = {"input_ids": list(prompt.token_ids)} if workload.chat else {"text": prompt.text}
    return {
        **asked,
        "sampling_params": {
            "temperature": workload.temperature,
            "max_new_tokens": max_tokens,
            "ignore_eos": workload.ignore_eos,
            "sampling_seed": workload.seed,
        },
        "stream": True,
    }


def flush_request() -> HttpRequest:
    """Empties the prefix cache, and so also resets `avg_spec_accept_length`.

    200: emptied. 400: not emptied, because requests were running or waiting; the end of the last one is enough,
    so it may be sent again at once. (From 0.5.10 on `?timeout=SECONDS` makes the server wait to be idle itself.)
    """
    return HttpRequest("POST", "/flush_cache")


@dataclass
class _Stream:
    """What the chunks of one answer have said so far."""

    texts: list[str] = field(default_factory=list)
    id_counts: list[int] = field(default_factory=list)
    times_ms: list[float] = field(default_factory=list)
    done: bool = False
    num_chunks: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)


def parse_generate(response: StreamedResponse) -> Generation:
    """The answer of a streamed /generate. Raises ValueError when it is not a complete, sensible one.

    A killed server leaves HTTP 200 and a stream without `finish_reason`. `meta_info.decode_throughput` is
    ignored: where an answer came in one piece a real 0.5.15.post1 gave up to 1e8.
    """
    stream = _Stream()
    for at_ms, payload in events(response):
        if payload == "[DONE]":
            stream.done = True
        else:
            _take_chunk(stream, at_ms, json_object(payload))
    reason = _finish_reason(stream.meta)
    if not stream.done or not reason:
        raise ValueError(f"the stream ended early, after {stream.num_chunks} chunks, without a finish reason")
    meta = stream.meta
    num_output = count(meta, "completion_tokens")
    if num_output is None:
        raise ValueError("the answer does not say how many tokens it has (no completion_tokens)")
    in_pieces = _in_pieces(stream, num_output)
    arrivals, drafts = _arrivals(stream, in_pieces), acceptance(meta)
    return Generation(
        text="".join(stream.texts) if in_pieces else stream.texts[-1],
        num_output_tokens=num_output,
        ttft_ms=arrivals[0] if arrivals else None,
        num_prompt_tokens=count(meta, "prompt_tokens"),
        num_drafted_tokens=drafts.num_drafted,
        num_accepted_tokens=drafts.num_accepted,
        num_verify_steps=drafts.num_steps,
        accept_histogram=drafts.histogram,
        server_decode_ms=_server_decode_ms(meta, num_output),
        server_e2e_ms=_duration_ms(meta, "e2e_latency"),
        chunk_ms=arrivals,
        finish_reason=reason,
        accept_source=drafts.source,
    )


def _duration_ms(meta: Mapping[str, Any], name: str) -> float | None:
    """A duration in milliseconds, which the server gives in seconds; None when it is absent or none."""
    value = meta.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MAX_S:
        return None
    return float(value) * 1000


def _server_decode_ms(meta: Mapping[str, Any], num_output: int) -> float | None:
    """The server's time for all tokens after the first; None where it does not say when the first one was ready.

    It does so as `first_token_latency`, in 0.5.23 and not yet in 0.5.20.
    """
    whole, first = _duration_ms(meta, "e2e_latency"), _duration_ms(meta, "first_token_latency")
    if whole is None or first is None or num_output < 2 or whole <= first:
        return None
    return whole - first


def _take_chunk(stream: _Stream, at_ms: float, chunk: Mapping[str, Any]) -> None:
    """Add one chunk. Raises ValueError for an error (they come with HTTP 200) or a chunk of another shape."""
    if "error" in chunk:
        raise ValueError(f"the server answered with an error: {plain(json.dumps(chunk['error']))}")
    meta = chunk.get("meta_info")
    if not isinstance(meta, dict):
        raise ValueError(f"a chunk without meta_info: {plain(json.dumps(chunk))}")
    ids = chunk.get("output_ids")
    text = chunk.get("text")
    stream.texts.append(text if isinstance(text, str) else "")
    stream.id_counts.append(len(ids) if isinstance(ids, list) else 0)
    stream.num_chunks += 1
    stream.meta = meta
    stream.times_ms.append(at_ms)


def _in_pieces(stream: _Stream, num_output: int) -> bool:
    """Whether each chunk holds a piece of the text, with incremental_streaming_output, or all of it so far.

    The token ids tell: in the first case the chunks have them all together, in the second the last chunk alone.
    """
    texts, counts = stream.texts, stream.id_counts
    if any(counts):
        return abs(sum(counts) - num_output) < abs(counts[-1] - num_output)
    return not all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))


def _arrivals(stream: _Stream, in_pieces: bool) -> tuple[float, ...]:
    """When each chunk came that brought something new. A token may be half a character, and show no text yet."""
    seen: tuple[str, int] = ("", 0)
    found = []
    for at_ms, text, num_ids in zip(stream.times_ms, stream.texts, stream.id_counts, strict=True):
        if (text or num_ids) and (in_pieces or text != seen[0] or num_ids > seen[1]):
            found.append(at_ms)
        seen = (text, num_ids)
    return tuple(found)


def _finish_reason(meta: Mapping[str, Any]) -> str:
    """`length` or `stop`; empty while there is none. Raises ValueError when the server gave the request up."""
    reason = meta.get("finish_reason")
    kind = reason.get("type") if isinstance(reason, dict) else reason
    if not isinstance(kind, str):
        return ""
    if kind == "abort":
        raise ValueError(f"the server aborted the request: {plain(json.dumps(reason))}")
    return plain(kind)
