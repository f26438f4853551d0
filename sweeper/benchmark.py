"""Measuring a running server: one request after another, and the numbers drawn from them.

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

import hashlib
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from launchers.clock import Clock
from sweeper.engines.base import Counters, Engine, Generation, StreamedResponse
from sweeper.errors import FailureKind, TrialError
from sweeper.http import ExchangeError, ExchangeTimeout, Target, get_page, send
from sweeper.records import Measurement, RequestResult
from sweeper.spec import Prompt, WorkloadSpec

Key = TypeVar("Key", int, str)
OnRequest = Callable[[RequestResult, int, int], None]
WARMUP_REPEAT = -1
"""`repeat` of a warm-up request; measured ones count from 0."""

_COUNTERS_TIMEOUT_S = 5.0
_FLUSH_S = 5.0
_FLUSH_POLL_S = 0.1
_MAX_TRIES = 3


def measure(
    target: Target, workload: WorkloadSpec, engine: Engine, clock: Clock, on_request: OnRequest
) -> Measurement:
    """Send the workload to the server at `target`: warm-ups, then every prompt in order, `repeats` times.

    `on_request` is called after each request with its result, how many are done and how many there are,
    warm-ups included. Raises TrialError: SERVER_HANG when a request takes too long, BENCHMARK_FAILED when it
    is not answered or the answer makes no sense.
    """
    client = _Client(target, workload, engine, clock)
    warmup_prompts = [workload.prompts[i % len(workload.prompts)] for i in range(workload.warmup_requests)]
    plan = [(prompt, repeat) for repeat in range(workload.repeats) for prompt in workload.prompts]
    total = len(warmup_prompts) + len(plan)
    warmups: list[RequestResult] = []
    requests: list[RequestResult] = []
    began_s = clock.monotonic_s()
    for prompt in warmup_prompts:
        warmups.append(client.ask(prompt, WARMUP_REPEAT))
        on_request(warmups[-1], len(warmups), total)
    warm_s = clock.monotonic_s()
    before = client.counters
    for prompt, repeat in plan:
        if prompt is workload.prompts[0]:
            client.empty_caches()  # a repeat must not be cheaper than the first pass
        requests.append(client.ask(prompt, repeat))
        on_request(requests[-1], len(warmups) + len(requests), total)
    return Measurement(
        requests=tuple(requests),
        warmups=tuple(warmups),
        metrics={
            **metrics_of(requests),
            **({"warmup_s": warm_s - began_s} if warmups else {}),
            "benchmark_s": clock.monotonic_s() - warm_s,
        },
        repeat_throughputs=tuple(group_throughputs(requests, lambda r: r.repeat).values()),
        prompt_throughputs=group_throughputs(requests, lambda r: r.prompt_id),
        accepted_per_position=_accepted_per_position(requests) or _position_growth(before, client.counters),
        accept_definition=_accept_definition(requests),
    )


class _Client:
    """Asks one server; remembers its counters after the last request, so that each request's share is known."""

    def __init__(self, target: Target, workload: WorkloadSpec, engine: Engine, clock: Clock) -> None:
        self.target = target
        self.workload = workload
        self.engine = engine
        self.clock = clock
        self.counters = self._read_counters()

    def ask(self, prompt: Prompt, repeat: int) -> RequestResult:
        """One request, sent again when only the way to the host broke; then the counters. Raises TrialError."""
        which = f"prompt {prompt.id!r}, {'warm-up' if repeat == WARMUP_REPEAT else f'repeat {repeat}'}"
        for num_tries in range(1, _MAX_TRIES + 1):
            sent_at = self.clock.now()
            try:
                response, answer = self._exchange(prompt, which)
                break
            except TrialError:
                if num_tries == _MAX_TRIES or not self.target.mended():
                    raise
        before, self.counters = self.counters, self._read_counters()
        spent = RequestResult(
            prompt_id=prompt.id,
            prompt_class=prompt.prompt_class,
            repeat=repeat,
            num_tries=num_tries,
            sent_at=sent_at,
            e2e_latency_ms=response.e2e_latency_ms,
            num_output_tokens=answer.num_output_tokens,
        )
        return spent.model_copy(update=_details(answer, before, self.counters))

    def empty_caches(self) -> None:
        """Empty what the server remembers of earlier requests. Raises TrialError when it refuses for 5 s."""
        request = self.engine.flush()
        deadline_s = self.clock.monotonic_s() + _FLUSH_S
        while request is not None:
            try:
                send(self.target, request, _FLUSH_S, self.clock)
                return
            except ExchangeError as error:  # a server still ending the last request refuses
                if self.clock.monotonic_s() >= deadline_s and not self.target.mended():
                    message = f"the server's caches could not be emptied: {error}"
                    raise TrialError(FailureKind.BENCHMARK_FAILED, message, error.lines) from error
            self.clock.sleep(_FLUSH_POLL_S)

    def _exchange(self, prompt: Prompt, which: str) -> tuple[StreamedResponse, Generation]:
        """One request and its answer, understood. Raises TrialError."""
        request = self.engine.request(prompt, self.workload, self.workload.max_tokens)
        try:
            response = send(self.target, request, self.workload.request_timeout_s, self.clock)
        except ExchangeTimeout as error:
            raise _failed(FailureKind.SERVER_HANG, which, error, error.lines) from error
        except ExchangeError as error:
            raise _failed(FailureKind.BENCHMARK_FAILED, which, error, error.lines) from error
        last = tuple(line[:300].decode("utf-8", "backslashreplace")[:300] for _, line in response.lines[-5:])
        try:
            answer = self.engine.parse(response)
        except ValueError as error:
            raise _failed(FailureKind.BENCHMARK_FAILED, which, error, last) from error
        if not answer.text or not answer.num_output_tokens:
            raise _failed(FailureKind.BENCHMARK_FAILED, which, "the answer is empty", last)
        return response, answer

    def _read_counters(self) -> Counters:
        """The server's totals; empty when it gives none, which costs a few derived numbers and nothing else."""
        try:
            page = get_page(self.target, self.engine.metrics_path, _COUNTERS_TIMEOUT_S)
        except ExchangeError:
            return Counters()
        return self.engine.counters(page.decode("utf-8", "replace"))


def _failed(kind: FailureKind, which: str, cause: object, lines: tuple[str, ...]) -> TrialError:
    """The error of one request, with what had arrived of its answer."""
    return TrialError(kind, f"{which}: {cause}", lines)


def _details(answer: Generation, before: Counters, after: Counters) -> dict[str, object]:
    """What else is known of a request; counts come from the answer or, if it has none, from the counters."""
    drafted, accepted = answer.num_drafted_tokens, answer.num_accepted_tokens
    steps, source = answer.num_verify_steps, answer.accept_source
    if steps is None and (steps := _growth(before.num_drafts, after.num_drafts)) is not None:
        source = "1 + accepted drafts / verify steps, from the server's counters"
    if drafted is None or accepted is None:
        drafted = _growth(before.num_draft_tokens, after.num_draft_tokens)
        accepted = _growth(before.num_accepted_tokens, after.num_accepted_tokens)
    return {
        "ttft_ms": answer.ttft_ms,
        "num_prompt_tokens": answer.num_prompt_tokens,
        "num_drafted_tokens": drafted,
        "num_accepted_tokens": accepted,
        "num_verify_steps": steps,
        "accept_histogram": answer.accept_histogram,
        "accept_source": source,
        "server_decode_ms": answer.server_decode_ms,
        "finish_reason": answer.finish_reason,
        "output_sha256": hashlib.sha256(answer.text.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def _growth(before: int | None, after: int | None) -> int | None:
    """How much a counter grew; None when it is not counted, or went back (another server's)."""
    return after - before if before is not None and after is not None and after >= before else None


def _position_growth(before: Counters, after: Counters) -> tuple[int, ...]:
    """Accepted drafts by position between two readings; empty when nothing was counted."""
    old = before.accepted_per_position
    grown = (new - (old[i] if i < len(old) else 0) for i, new in enumerate(after.accepted_per_position))
    return tuple(max(0, count) for count in grown)


def _accepted_per_position(requests: Sequence[RequestResult]) -> tuple[int, ...]:
    """Accepted drafts by position, from the requests' own histograms; empty unless each verifying one has one."""
    verifying = [r for r in requests if r.num_verify_steps]
    if not verifying or not all(r.accept_histogram for r in verifying):
        return ()
    longest = max(len(r.accept_histogram) for r in verifying)
    return tuple(sum(sum(r.accept_histogram[n:]) for r in verifying) for n in range(1, longest))


def _accept_definition(requests: Sequence[RequestResult]) -> str:
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
