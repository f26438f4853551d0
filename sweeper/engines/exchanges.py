"""What is sent to a server and what it answers, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request to the server, as data."""

    method: str
    path: str
    json: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class StreamedResponse:
    """A streamed answer as it arrived: (milliseconds since the request was sent, one line of the body)."""

    lines: tuple[tuple[float, bytes], ...]
    e2e_latency_ms: float


@dataclass(frozen=True)
class Generation:
    """One answer, understood. A value that the server did not report is None, never 0.

    `ttft_ms` is the time to the first chunk that holds text; `server_decode_ms` the server's own figure
    for all output tokens after the first, `server_e2e_ms` its figure for the whole request. `chunk_ms`: when
    each chunk that holds text arrived. `accept_histogram[n]`: verify steps that accepted n drafts.
    `accept_source`: which of the server's figures the accepted drafts are drawn from.
    """

    text: str
    num_output_tokens: int
    ttft_ms: float | None = None
    num_prompt_tokens: int | None = None
    num_drafted_tokens: int | None = None
    num_accepted_tokens: int | None = None
    num_verify_steps: int | None = None
    accept_histogram: tuple[int, ...] = ()
    server_decode_ms: float | None = None
    server_e2e_ms: float | None = None
    chunk_ms: tuple[float, ...] = ()
    finish_reason: str = ""
    accept_source: str = ""


@dataclass(frozen=True)
class Counters:
    """The server's own totals since its start; None where the server does not count.

    `num_drafts`: verify steps in which drafts were verified. `accepted_per_position`: by draft position.
    """

    num_drafts: int | None = None
    num_draft_tokens: int | None = None
    num_accepted_tokens: int | None = None
    accepted_per_position: tuple[int, ...] = ()


@dataclass(frozen=True)
class Identity:
    """Who answered: the nonce it was started with and the model it serves."""

    nonce: str
    model_path: str
