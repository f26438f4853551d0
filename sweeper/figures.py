"""The numbers drawn from the requests of a benchmark. Pure.

Definitions, each over all measured requests (warm-ups are kept apart and never counted):

- output_throughput: output tokens / summed end-to-end time. Requests follow one another, so that sum is all time.
- decode_throughput: (tokens - 1) / (end-to-end time - TTFT), both summed first.
- tpot_ms: median over requests of (end-to-end time - TTFT) / (tokens - 1).
- accept_length: 1 + accepted draft tokens / verify steps, per request where the server counts them so, else from
  its counters; `accept_definition` says which.
- tokens_per_step: tokens / (tokens - accepted), since every decode step adds one token of its own.
- repeat_spread_pct: (highest - lowest) / mean of the throughputs of the repeats, in percent.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sweeper.records import RequestResult

Key = TypeVar("Key", int, str)


def accepted_per_position(requests: Sequence[RequestResult]) -> tuple[int, ...]:
    """Accepted drafts by position, from the requests' own histograms; empty unless each verifying one has one."""
    verifying = [r for r in requests if r.num_verify_steps]
    if not verifying or not all(r.accept_histogram for r in verifying):
        return ()
    longest = max(len(r.accept_histogram) for r in verifying)
    return tuple(sum(sum(r.accept_histogram[n:]) for r in verifying) for n in range(1, longest))


def accept_definition(requests: Sequence[RequestResult]) -> str:
    """Where accept_length comes from; all that were used, should they differ."""
    return "; ".join(dict.fromkeys(r.accept_source for r in requests if r.accept_source))


def throughput(requests: Iterable[RequestResult]) -> float:
    """Output tokens per second of end-to-end time."""
    counted = list(requests)
    return sum(r.num_output_tokens for r in counted) * 1000 / sum(r.e2e_latency_ms for r in counted)


def group_throughputs(requests: Sequence[RequestResult], key: Callable[[RequestResult], Key]) -> dict[Key, float]:
    """The throughput of each group of requests with the same key, in order of first appearance."""
    keys = dict.fromkeys(key(r) for r in requests)
    return {wanted: throughput(r for r in requests if key(r) == wanted) for wanted in keys}


def metrics_of(requests: Sequence[RequestResult]) -> dict[str, float]:
    """Every metric that these requests (at least one) give; what was not measured is absent."""
    latencies = [r.e2e_latency_ms for r in requests]
    ttfts = [r.ttft_ms for r in requests if r.ttft_ms is not None]
    repeats = list(group_throughputs(requests, lambda r: r.repeat).values())
    found: dict[str, float] = {
        "output_throughput": throughput(requests),
        "mean_prompt_throughput": statistics.fmean(throughput([r]) for r in requests),
        "e2e_latency_ms": statistics.median(latencies),
        "num_output_tokens": sum(r.num_output_tokens for r in requests),
        "num_requests": len(requests),
    }
    if ttfts:
        found["ttft_ms"] = statistics.median(ttfts)
    if len(repeats) > 1:
        found["repeat_spread_pct"] = (max(repeats) - min(repeats)) / statistics.fmean(repeats) * 100
    return found | _decode_metrics(requests) | _draft_metrics(requests)


def _decode_metrics(requests: Sequence[RequestResult]) -> dict[str, float]:
    """Rates after the first token, over the requests that have more than one and a known TTFT."""
    decoding = [
        (r.num_output_tokens - 1, r.e2e_latency_ms - r.ttft_ms)
        for r in requests
        if r.ttft_ms is not None and r.num_output_tokens > 1 and r.e2e_latency_ms > r.ttft_ms
    ]
    if not decoding:
        return {}
    return {
        "decode_throughput": sum(n for n, _ in decoding) * 1000 / sum(ms for _, ms in decoding),
        "tpot_ms": statistics.median(ms / n for n, ms in decoding),
    }


def _draft_metrics(requests: Sequence[RequestResult]) -> dict[str, float]:
    """What became of the drafts; only from values that every request has."""
    tokens = sum(r.num_output_tokens for r in requests)
    drafted = _total(r.num_drafted_tokens for r in requests)
    accepted = _total(r.num_accepted_tokens for r in requests)
    steps = _total(r.num_verify_steps for r in requests)
    found: dict[str, float] = {}
    if drafted is not None:
        found["num_drafted_tokens"] = drafted
    if accepted is not None:
        found["num_accepted_tokens"] = accepted
        if tokens > accepted:
            found["tokens_per_step"] = tokens / (tokens - accepted)
    if drafted and accepted is not None:
        found["accept_rate"] = accepted / drafted
    if steps is not None:
        found["num_verify_steps"] = steps
    if steps and accepted is not None:
        found["accept_length"] = 1 + accepted / steps
    return found


def _total(values: Iterable[int | None]) -> int | None:
    """The sum; None when any value is missing."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
