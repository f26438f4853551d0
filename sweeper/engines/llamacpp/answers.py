"""Reading what a llama.cpp server answers. All of it is untrusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweeper.engines.base import Generation, StreamedResponse
from sweeper.engines.openai_stream import SHOWN, count, read_stream


def parse_stream(response: StreamedResponse) -> Generation:
    """The answer of /v1/chat/completions with `stream`. Raises ValueError when it is not complete and sensible.

    llama.cpp leaves `draft_n` out when nothing was drafted, so 0 is known only if its timings are there.
    """
    stream = read_stream(response)
    num_output = count(stream.usage, "completion_tokens")
    if num_output is None and (num_output := count(stream.timings, "predicted_n")) is None:
        raise ValueError("the answer does not say how many tokens it has (neither usage nor timings)")
    drafted, accepted = count(stream.timings, "draft_n"), count(stream.timings, "draft_n_accepted")
    if stream.timings:
        drafted, accepted = drafted or 0, accepted or 0
        if not accepted <= drafted:
            raise ValueError(f"the answer claims {accepted} accepted of {drafted} drafted tokens")
    prompt_ms, decode_ms = (_duration(stream.timings, name) for name in ("prompt_ms", "predicted_ms"))
    return Generation(
        text="".join(stream.text),
        num_output_tokens=num_output,
        ttft_ms=stream.chunk_ms[0] if stream.chunk_ms else None,
        num_prompt_tokens=count(stream.usage, "prompt_tokens"),
        num_drafted_tokens=drafted,
        num_accepted_tokens=accepted,
        server_decode_ms=decode_ms,
        server_e2e_ms=None if prompt_ms is None or decode_ms is None else prompt_ms + decode_ms,
        chunk_ms=tuple(stream.chunk_ms),
        finish_reason=stream.finish_reason,
    )


def _duration(data: Mapping[str, Any], name: str) -> float | None:
    """A duration, None when absent. Raises ValueError when it is not one."""
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ValueError(f"{name} is {str(value)[:SHOWN]!r}, not a duration")
    return float(value)
