"""What is kept of one request: its answer, understood, and the server's counters around it. Pure."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass

from sweeper.engines.base import Counters, Engine, Generation, StreamedResponse
from sweeper.errors import FailureKind, TrialError
from sweeper.measuring.figures import gaps_ms, percentile_99
from sweeper.records import RequestResult
from sweeper.workload_spec import Prompt

WARMUP_REPEAT = -1
"""`repeat` of a warm-up request; measured ones count from 0."""

MAX_TEXT_BYTES = 65_536
"""So much of an answer's text is kept; its hash is over all of it."""

_FROM_COUNTERS = "1 + accepted drafts / verify steps, from the server's counters"


@dataclass(frozen=True)
class Asked:
    """One request as it was made. `started_ms` counts from the beginning of its pass."""

    prompt: Prompt
    repeat: int
    sent_at: datetime.datetime
    started_ms: float = 0.0
    num_tries: int = 1


@dataclass(frozen=True)
class Answered:
    """One request with its answer: what is recorded, and what only the figures need."""

    result: RequestResult
    gaps_ms: tuple[float, ...]


def request_name(prompt: Prompt, repeat: int) -> str:
    """The request in a message's words."""
    return f"prompt {prompt.id!r}, {'warm-up' if repeat == WARMUP_REPEAT else f'repeat {repeat}'}"


def understood(engine: Engine, response: StreamedResponse, which: str) -> Generation:
    """The answer. Raises TrialError (BENCHMARK_FAILED) when it is empty or makes no sense; `which` names it."""
    last = tuple(line[:300].decode("utf-8", "backslashreplace")[:300] for _, line in response.lines[-5:])
    try:
        answer = engine.parse(response)
    except ValueError as error:
        raise TrialError(FailureKind.BENCHMARK_FAILED, f"{which}: {error}", last) from error
    if not answer.text or not answer.num_output_tokens:
        raise TrialError(FailureKind.BENCHMARK_FAILED, f"{which}: the answer is empty", last)
    return answer


def answered(asked: Asked, response: StreamedResponse, answer: Generation, share: Counters) -> Answered:
    """The request with its answer. `share`: by how much the server's counters grew with this request alone.

    Counts come from the answer or, if it has none, from the counters.
    """
    drafted, accepted = answer.num_drafted_tokens, answer.num_accepted_tokens
    if drafted is None or accepted is None:
        drafted, accepted = share.num_draft_tokens, share.num_accepted_tokens
    steps, source = answer.num_verify_steps, answer.accept_source
    if steps is None and share.num_drafts is not None:
        steps, source = share.num_drafts, _FROM_COUNTERS
    text = answer.text.encode("utf-8", "surrogatepass")
    gaps = gaps_ms(answer.chunk_ms)
    result = RequestResult(
        prompt_id=asked.prompt.id,
        prompt_class=asked.prompt.prompt_class,
        repeat=asked.repeat,
        num_tries=asked.num_tries,
        sent_at=asked.sent_at,
        started_ms=asked.started_ms,
        e2e_latency_ms=response.e2e_latency_ms,
        ttft_ms=answer.ttft_ms,
        itl_p99_ms=percentile_99(gaps) if gaps else None,
        num_prompt_tokens=answer.num_prompt_tokens,
        num_output_tokens=answer.num_output_tokens,
        num_drafted_tokens=drafted,
        num_accepted_tokens=accepted,
        num_verify_steps=steps,
        server_decode_ms=answer.server_decode_ms,
        server_e2e_ms=answer.server_e2e_ms,
        accept_histogram=answer.accept_histogram,
        accept_source=source,
        finish_reason=answer.finish_reason,
        output_sha256=hashlib.sha256(text).hexdigest(),
        output_text=text[:MAX_TEXT_BYTES].decode("utf-8", "replace"),
    )
    return Answered(result, gaps)


def grown(before: Counters, after: Counters) -> Counters:
    """By how much the counters grew; what is not counted, or went back (another server's), is left out."""
    old = before.accepted_per_position
    positions = (new - (old[i] if i < len(old) else 0) for i, new in enumerate(after.accepted_per_position))
    return Counters(
        num_drafts=_growth(before.num_drafts, after.num_drafts),
        num_draft_tokens=_growth(before.num_draft_tokens, after.num_draft_tokens),
        num_accepted_tokens=_growth(before.num_accepted_tokens, after.num_accepted_tokens),
        accepted_per_position=tuple(max(0, count) for count in positions),
    )


def _growth(before: int | None, after: int | None) -> int | None:
    return after - before if before is not None and after is not None and after >= before else None
