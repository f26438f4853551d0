"""SGLang's `/generate`: what is asked, and what its streamed answer says. All of the answer is untrusted.

Checked against the sources of 0.5.8, 0.5.10.post1, 0.5.15.post1 and 0.5.23 and against a real 0.5.15.post1.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweeper.engines.base import Generation, HttpRequest, StreamedResponse
from sweeper.engines.events import events, json_object
from sweeper.text import plain
from sweeper.workload_spec import Prompt, WorkloadSpec

CORRECT_DRAFTS = "1 + correct drafts / verify steps, per request"
FALLBACK = "(completion tokens - 1) / verify steps, per request: this version does not count correct drafts"

MAX_COUNT = 10**9
"""No answer has more tokens: a larger count is nonsense, and would spoil every sum it enters."""

MAX_HISTOGRAM = 1024

# Newest name first; all of them count without the bonus token, which each verify step adds by itself.
_CORRECT = (
    "spec_num_correct_drafts",  # since 0.5.15
    "spec_accepted_drafts",  # an alias of it in 0.5.15 and 0.5.20
    "spec_accept_token_num",  # 0.5.8 and 0.5.10
)
_PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")  # 0.5.10 knows only the second


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
            "ignore_eos": False,
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
    ttft_ms: float | None = None
    done: bool = False
    num_chunks: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)


def parse_generate(response: StreamedResponse) -> Generation:
    """The answer of a streamed /generate. Raises ValueError when it is not a complete, sensible one.

    A killed server leaves HTTP 200 and a stream without `finish_reason`. `meta_info.decode_throughput` is
    ignored: under speculation a real 0.5.15.post1 gave up to 1e8.
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
    num_output = _count(meta, "completion_tokens")
    if num_output is None:
        raise ValueError("the answer does not say how many tokens it has (no completion_tokens)")
    steps, accepted = _count(meta, "spec_verify_ct"), _correct_or_fallback(meta)
    drafted = _first_count(meta, _PROPOSED)
    if accepted is not None and drafted is not None and accepted > drafted:
        drafted = None  # under speculative_adaptive it is computed from a draft length that is not the real one
    return Generation(
        text=_whole_text(stream, num_output),
        num_output_tokens=num_output,
        ttft_ms=stream.ttft_ms,
        num_prompt_tokens=_count(meta, "prompt_tokens"),
        num_drafted_tokens=drafted,
        num_accepted_tokens=accepted,
        num_verify_steps=steps,
        accept_histogram=_histogram(meta, steps, accepted),
        finish_reason=reason,
        accept_source=accept_source(meta),
    )


def accept_source(meta_info: Mapping[str, Any]) -> str:
    """Which definition of the accept length these figures allow; empty when nothing was verified.

    `1 + num_accepted_tokens / num_verify_steps` is right for both: the fallback fills in the accepted drafts
    that give (completion tokens - 1) / verify steps. The first token comes from the prefill, so it is no verify
    step's; `spec_accept_length` of the server itself forgets that.
    """
    if not _count(meta_info, "spec_verify_ct"):
        return ""
    return FALLBACK if _first_count(meta_info, _CORRECT) is None else CORRECT_DRAFTS


def _correct_or_fallback(meta: Mapping[str, Any]) -> int | None:
    """The accepted drafts, counted by the server or computed from its tokens and steps; None when unknown."""
    if (correct := _first_count(meta, _CORRECT)) is not None:
        return correct
    steps, tokens = _count(meta, "spec_verify_ct"), _count(meta, "completion_tokens")
    if not steps or tokens is None:
        return None
    return max(0, tokens - 1 - steps)


def _histogram(meta: Mapping[str, Any], steps: int | None, accepted: int | None) -> tuple[int, ...]:
    """Verify steps by accepted drafts; empty when it is missing or contradicts the counts."""
    found: list[int] = next((meta[name] for name in _HISTOGRAM if isinstance(meta.get(name), list)), [])
    if len(found) > MAX_HISTOGRAM or not all(_is_count(value) for value in found):
        return ()
    if sum(found) != steps or sum(n * value for n, value in enumerate(found)) != accepted:
        return ()
    return tuple(found)


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
    if stream.ttft_ms is None and (stream.texts[-1] or stream.id_counts[-1]):
        stream.ttft_ms = at_ms


def _whole_text(stream: _Stream, num_output: int) -> str:
    """The text, whether each chunk holds all of it so far or, with incremental_streaming_output, a piece of it.

    The token ids tell: in the first case the last chunk has them all, in the second the chunks together.
    """
    texts, counts = stream.texts, stream.id_counts
    if any(counts):
        pieces = abs(sum(counts) - num_output) < abs(counts[-1] - num_output)
    else:
        pieces = not all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))
    return "".join(texts) if pieces else texts[-1]


def _finish_reason(meta: Mapping[str, Any]) -> str:
    """`length` or `stop`; empty while there is none. Raises ValueError when the server gave the request up."""
    reason = meta.get("finish_reason")
    kind = reason.get("type") if isinstance(reason, dict) else reason
    if not isinstance(kind, str):
        return ""
    if kind == "abort":
        raise ValueError(f"the server aborted the request: {plain(json.dumps(reason))}")
    return plain(kind)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def _count(meta: Mapping[str, Any], name: str) -> int | None:
    """A count, None when absent. Raises ValueError when it is not one."""
    value = meta.get(name)
    if value is None:
        return None
    if not _is_count(value):
        raise ValueError(f"{name} is {plain(json.dumps(value))!r}, not a count")
    return int(value)


def _first_count(meta: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """The count under the first of `names` that is there."""
    return next((_count(meta, name) for name in names if meta.get(name) is not None), None)
