"""Reasons to look twice at what was measured, one line each. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from sweeper.figures import group_throughputs, server_gap_pct, tokens_per_step
from sweeper.records import RequestResult
from sweeper.stats import t_quantile

SERVER_GAP_PCT = 1.0
"""The client's and the server's own time may differ by so much."""

SERVER_GAP_MS = 3.0
"""And by so much in each request: connection, headers, and the first and last line of an answer cost the client a
millisecond or two that the server's clock does not see, which is more than 1 % of a request of 100 ms."""

RISE_PCT = 3.0
"""Later passes that are faster by less than this are noise, whatever the statistics say."""

_RISE_CONFIDENCE = 0.99
_PRIOR_SPREAD = 0.05
_PRIOR_DEGREES = 4.0
"""Before any is seen, the gain of one prompt is taken to differ from another's by 5 %; worth four observations.

Without it two prompts, or one, could never show anything."""

_FLATTERS = "a cache of the server may flatter them"

_Rates = Mapping[str, float]
_Rate = Callable[[RequestResult], float | None]


def doubts_of(requests: Sequence[RequestResult]) -> tuple[str, ...]:
    """What is doubtful about requests that followed one another; nothing, usually."""
    lines = (server_doubt(requests), passes_doubt(requests))
    return tuple(line for line in lines if line)


def server_doubt(requests: Sequence[RequestResult]) -> str:
    """Whether client and server disagree about how long the requests took; empty: they agree, or it is unknown."""
    gap_pct = server_gap_pct(requests)
    both = [(r.e2e_latency_ms, r.server_e2e_ms) for r in requests if r.server_e2e_ms]
    if gap_pct is None:
        return ""
    client_ms = statistics.fmean(client for client, _ in both)
    server_ms = statistics.fmean(server for _, server in both)
    if abs(client_ms - server_ms) <= server_ms * SERVER_GAP_PCT / 100 + SERVER_GAP_MS:
        return ""
    meaning = (
        "the way to the server, a queue in it or the client is part of what was measured"
        if gap_pct > 0
        else "what the server calls a request's time is not what the client saw of it"
    )
    side = "above" if gap_pct > 0 else "below"
    return (
        f"the client's time is {abs(gap_pct):.1f} % {side} the server's own ({client_ms:,.0f} against "
        f"{server_ms:,.0f} ms a request): {meaning}"
    )


def passes_doubt(requests: Sequence[RequestResult]) -> str:
    """Whether later passes did better than the first, although no cache should know their prompts; else empty.

    Paired by prompt. More drafts accepted, or only the time to the first token shorter: something remembers. The
    same work done faster: the server was not warm.
    """
    first = [r for r in requests if r.repeat == 0]
    later = [r for r in requests if r.repeat > 0]
    if not later:
        return ""
    if (gain := _gained(first, later, tokens_per_step)) is not None:
        return f"later passes keep {gain:.0f} % more tokens per decode step than the first: {_FLATTERS}"
    if (gain := _gain(_speeds(first), _speeds(later))) is None:
        return ""
    if _gained(first, later, _prefill_rate) is not None and _gained(first, later, _decode_rate) is None:
        return f"later passes are faster by {gain:.0f} %, as they reach the first token sooner: {_FLATTERS}"
    return f"later passes are faster by {gain:.0f} % than the first: the server was still warming up"


def _gained(first: Sequence[RequestResult], later: Sequence[RequestResult], rate: _Rate) -> float | None:
    return _gain(_by_prompt(first, rate), _by_prompt(later, rate))


def _gain(before: _Rates, after: _Rates) -> float | None:
    """By how many percent `after` lies above `before`; None when that is within the noise, or nothing is known."""
    logs = [math.log(after[key] / rate) for key, rate in before.items() if key in after]
    if not logs:
        return None
    degrees = _PRIOR_DEGREES + len(logs) - 1
    own = statistics.pvariance(logs) * len(logs)
    error = math.sqrt((_PRIOR_DEGREES * _PRIOR_SPREAD**2 + own) / degrees / len(logs))
    mean = statistics.fmean(logs)
    gain = 100 * (math.exp(mean) - 1)
    significant = mean > t_quantile(_RISE_CONFIDENCE, degrees) * error
    return gain if significant and gain > RISE_PCT else None


def _speeds(requests: Sequence[RequestResult]) -> _Rates:
    return group_throughputs(requests, lambda r: r.prompt_id)


def _by_prompt(requests: Sequence[RequestResult], rate: _Rate) -> _Rates:
    """The mean rate of each prompt whose requests all have one above 0."""
    found: dict[str, list[float | None]] = {}
    for request in requests:
        found.setdefault(request.prompt_id, []).append(rate(request))
    known = {prompt: [r for r in rates if r] for prompt, rates in found.items()}
    return {prompt: statistics.fmean(r) for prompt, r in known.items() if len(r) == len(found[prompt])}


def _decode_rate(request: RequestResult) -> float | None:
    return request.decode_throughput


def _prefill_rate(request: RequestResult) -> float | None:
    return 1000 / request.ttft_ms if request.ttft_ms else None
