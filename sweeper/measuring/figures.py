"""The numbers drawn from the requests of a benchmark. Pure; requests may follow one another or overlap.

Definitions, each over all measured requests (warm-ups are kept apart and never counted):

- output_throughput: output tokens / time. Where requests follow one another, that is their summed end-to-end time;
  where they overlap, the wall-clock time of each pass, first sent to last byte, summed over the passes.
- request_throughput: requests / the same time.
- decode_throughput: (tokens - 1) / (end-to-end time - TTFT), both summed first: a single stream's rate.
- tpot_ms: median over requests of (end-to-end time - TTFT) / (tokens - 1).
- ttft_p99_ms: 99th percentile over requests; itl_p99_ms: over all gaps between two chunks that hold text, of all
  requests. A chunk holds what one decode step kept, so under speculation a gap may bring several tokens.
- accept_length: 1 + accepted draft tokens / verify steps, per request where the server counts them so, else from
  its counters; `accept_definition` says which.
- tokens_per_step: tokens / (tokens - accepted), since every decode step adds one token of its own.
- repeat_spread_pct: (highest - lowest) / mean of the throughputs of the repeats, in percent.
- server_gap_pct: (summed end-to-end time / the server's own - 1) x 100, over the requests that have both.

Percentiles are interpolated between the two nearest values (the "inclusive" method, numpy's default).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
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
    """Output tokens per second of summed end-to-end time: where requests overlap, a single stream's rate."""
    counted = list(requests)
    return _tokens(counted) / _summed_s(counted)


def group_throughputs(requests: Sequence[RequestResult], key: Callable[[RequestResult], Key]) -> dict[Key, float]:
    """The throughput of each group of requests with the same key, in order of first appearance."""
    keys = dict.fromkeys(key(r) for r in requests)
    return {wanted: throughput(r for r in requests if key(r) == wanted) for wanted in keys}


def repeat_throughputs(requests: Sequence[RequestResult], walls_s: Sequence[float] = ()) -> tuple[float, ...]:
    """The throughput of each pass over the prompts, in order. `walls_s`: as in `metrics_of`."""
    passes = dict.fromkeys(r.repeat for r in requests)
    groups = [[r for r in requests if r.repeat == number] for number in passes]
    walls = walls_s or [_summed_s(group) for group in groups]
    return tuple(_tokens(group) / wall_s for group, wall_s in zip(groups, walls, strict=True))


def tokens_per_step(request: RequestResult) -> float | None:
    """Output tokens per decode step of one request; None when its accepted drafts are not known."""
    tokens, accepted = request.num_output_tokens, request.num_accepted_tokens
    return tokens / (tokens - accepted) if accepted is not None and tokens > accepted else None


def percentile_99(values: Sequence[float]) -> float:
    """The 99th percentile of at least one value."""
    return statistics.quantiles(values, n=100, method="inclusive")[-1] if len(values) > 1 else values[0]


def gaps_ms(chunk_ms: Sequence[float]) -> tuple[float, ...]:
    """The times between chunks that arrived at `chunk_ms`."""
    return tuple(later - earlier for earlier, later in pairwise(chunk_ms))


def metrics_of(
    requests: Sequence[RequestResult], walls_s: Sequence[float] = (), gaps: Sequence[float] = ()
) -> dict[str, float]:
    """Every metric that these requests (at least one) give; what was not measured is absent.

    `walls_s`: the wall-clock seconds of each pass, in order, where requests overlap; empty: they follow one
    another. `gaps`: milliseconds between chunks, of all requests.
    """
    time_s = sum(walls_s) if walls_s else _summed_s(requests)
    ttfts = [r.ttft_ms for r in requests if r.ttft_ms is not None]
    repeats = repeat_throughputs(requests, walls_s)
    found: dict[str, float] = {
        "output_throughput": _tokens(requests) / time_s,
        "request_throughput": len(requests) / time_s,
        "mean_prompt_throughput": statistics.fmean(throughput([r]) for r in requests),
        "e2e_latency_ms": statistics.median(r.e2e_latency_ms for r in requests),
        "num_output_tokens": _tokens(requests),
        "num_requests": len(requests),
        "num_repeats": len(repeats),
    }
    if ttfts:
        found |= {"ttft_ms": statistics.median(ttfts), "ttft_p99_ms": percentile_99(ttfts)}
    if gaps:
        found["itl_p99_ms"] = percentile_99(gaps)
    if len(repeats) > 1:
        found["repeat_spread_pct"] = (max(repeats) - min(repeats)) / statistics.fmean(repeats) * 100
    if (gap := server_gap_pct(requests)) is not None:
        found["server_gap_pct"] = gap
    return found | _decode_metrics(requests) | _draft_metrics(requests)


def server_gap_pct(requests: Iterable[RequestResult]) -> float | None:
    """By how much the client's time exceeds the server's own, in percent; None when no request has both."""
    both = [(r.e2e_latency_ms, r.server_e2e_ms) for r in requests if r.server_e2e_ms]
    if not both:
        return None
    return (sum(client for client, _ in both) / sum(server for _, server in both) - 1) * 100


def _tokens(requests: Iterable[RequestResult]) -> int:
    return sum(r.num_output_tokens for r in requests)


def _summed_s(requests: Iterable[RequestResult]) -> float:
    return sum(r.e2e_latency_ms for r in requests) / 1000


def pooled_drafts(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """What became of the drafts in several workloads together; what none of them has is absent."""
    names = ("num_drafted_tokens", "num_accepted_tokens", "num_verify_steps")
    known = [name for name in names if any(name in each for each in metrics)]
    found = {name: sum(each.get(name, 0.0) for each in metrics) for name in known}
    lengths = [(m["accept_length"] - 1, m["num_verify_steps"]) for m in metrics if "accept_length" in m]
    if steps := sum(count for _, count in lengths):
        found["accept_length"] = 1 + sum(kept * count for kept, count in lengths) / steps
    return found


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
    tokens = _tokens(requests)
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
