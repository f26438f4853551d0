"""Reasons to look twice at what was measured, one line each. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from sweeper.measuring.figures import repeat_throughputs, server_gap_pct, tokens_per_step
from sweeper.records import RequestResult
from sweeper.statistics.stats import t_quantile

SERVER_GAP_PCT = 1.0
"""The client's and the server's own time may differ by so much."""

SERVER_GAP_MS = 3.0
"""And by so much in each request: connection, headers, and the first and last line of an answer cost the client a
millisecond or two that the server's clock does not see, which is more than 1 % of a request of 100 ms."""

RISE_PCT = 3.0
"""Later passes that are faster by less than this are noise, whatever the statistics say."""

NOISE_OF_PASSES = 1.5
"""And by so many standard deviations of the later passes; a server that grows faster by as much in every one of
four passes is 2 of them ahead of the first."""

_RISE_CONFIDENCE = 0.99
_PRIOR_SPREAD = 0.05
_PRIOR_DEGREES = 4.0
"""Before any is seen, the gain of one prompt is taken to differ from another's by 5 %; worth four observations.

Without it two prompts, or one, could never show anything."""

_FLATTERS = "a cache of the server may flatter them"

_Rates = Mapping[str, float]
_Rate = Callable[[RequestResult], float | None]


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


def resent_doubt(requests: Sequence[RequestResult]) -> str:
    """Whether requests were sent again because the way to the host broke; else empty."""
    count = sum(r.num_tries > 1 for r in requests)
    return f"{count} of {len(requests)} requests were sent again: the way to the host had broken" if count else ""


def passes_doubt(requests: Sequence[RequestResult]) -> str:
    """Whether later passes did better than the first, although no cache should know their prompts; else empty.

    Paired by prompt. More drafts kept, or only the time to the first token shorter: something remembers. The same
    work done faster: the server was not warm.
    """
    first = [r for r in requests if r.repeat == 0]
    later = [r for r in requests if r.repeat > 0]
    if not later:
        return ""
    if (gain := _gained(first, later, tokens_per_step)) is not None:
        return f"later passes keep {gain:.0f} % more tokens per decode step than the first: {_FLATTERS}"
    gain = _gained(first, later, _speed)
    if gain is None or _within_noise_of_passes(requests):
        return ""
    if _gained(first, later, _prefill_rate) is not None and _gained(first, later, _decode_rate) is None:
        return f"later passes are faster by {gain:.0f} %, as they reach the first token sooner: {_FLATTERS}"
    if _kept_per_step(later) > (1 + RISE_PCT / 100) * _kept_per_step(first):
        return f"later passes are faster by {gain:.0f} %, as more drafts are kept: {_FLATTERS}"
    return f"later passes are faster by {gain:.0f} % than the first: a server still warming up, or a busy host"


def _within_noise_of_passes(requests: Sequence[RequestResult]) -> bool:
    """Whether the later passes differ so much among themselves that a slow first one says nothing.

    A host that is busy with something else slows whole passes. Two passes do not show it.
    """
    first, *later = repeat_throughputs(requests)
    return len(later) > 1 and statistics.fmean(later) - first < NOISE_OF_PASSES * statistics.stdev(later)


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


def _by_prompt(requests: Sequence[RequestResult], rate: _Rate) -> _Rates:
    """The mean rate of each prompt whose requests all have one above 0."""
    found: dict[str, list[float | None]] = {}
    for request in requests:
        found.setdefault(request.prompt_id, []).append(rate(request))
    known = {prompt: [r for r in rates if r] for prompt, rates in found.items()}
    return {prompt: statistics.fmean(r) for prompt, r in known.items() if len(r) == len(found[prompt])}


def _kept_per_step(requests: Sequence[RequestResult]) -> float:
    """Output tokens per decode step, of all requests together; 1 where accepted drafts are not counted."""
    known = [r.num_accepted_tokens for r in requests if r.num_accepted_tokens is not None]
    tokens, accepted = sum(r.num_output_tokens for r in requests), sum(known)
    return tokens / (tokens - accepted) if len(known) == len(requests) and tokens > accepted else 1.0


def _speed(request: RequestResult) -> float | None:
    return request.output_throughput


def _decode_rate(request: RequestResult) -> float | None:
    return request.decode_throughput


def _prefill_rate(request: RequestResult) -> float | None:
    return 1000 / request.ttft_ms if request.ttft_ms else None
