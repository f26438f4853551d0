"""Measuring a running server: one request after another; what becomes of them is in figures.py."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from launchers.clock import Clock
from sweeper.engines.base import Counters, Engine, Generation, StreamedResponse
from sweeper.errors import FailureKind, TrialError
from sweeper.figures import accept_definition, accepted_per_position, group_throughputs, metrics_of
from sweeper.host_load import SendAll
from sweeper.http import ExchangeError, ExchangeTimeout, Target, get_page, send
from sweeper.load import Load
from sweeper.records import Measurement, Reference, RequestResult
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec

OnRequest = Callable[[RequestResult, int, int], None]
WARMUP_REPEAT = -1
"""`repeat` of a warm-up request; measured ones count from 0."""

_COUNTERS_TIMEOUT_S = 5.0
_FLUSH_S = 5.0
_FLUSH_TIMEOUT_S = 30.0
_FLUSH_POLL_S = 0.1
_MAX_TRIES = 3


@dataclass(frozen=True)
class Bench:
    """What measuring takes besides the server and the load.

    `on_request` is called after each request with its result, how many are done and how many there are, warm-ups
    included. `config` is what the server runs under. `reference`: whom to stop for, when that far behind it.
    `send_all` sends many requests at once, from the host.
    """

    engine: Engine
    clock: Clock
    on_request: OnRequest
    config: ServerConfig
    reference: Reference | None = None
    send_all: SendAll | None = None


def measure(target: Target, load: Load, bench: Bench) -> Measurement:
    """Send the load to the server at `target`: warm-ups, then every prompt of each pass in order.

    Raises TrialError: SERVER_HANG when a request takes too long, BENCHMARK_FAILED when it is not answered or the
    answer makes no sense.
    """
    workload, clock, on_request = load.workload, bench.clock, bench.on_request
    client = _Client(target, workload, bench.engine, clock)
    warmup_prompts = [load.warmup] * min(1, workload.warmup_max_requests)
    plan = [(prompt, number) for number in range(workload.repeats) for prompt in load.passes[number]]
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
        if prompt is load.passes[repeat][0]:
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
        accepted_per_position=accepted_per_position(requests) or _position_growth(before, client.counters),
        accept_definition=accept_definition(requests),
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
                # The server may still be at the first one, and would remember it.
                self.empty_caches(self.workload.request_timeout_s)
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

    def empty_caches(self, patience_s: float = _FLUSH_S) -> None:
        """Empty what the server remembers of earlier requests; it must be idle for that.

        Raises TrialError when it refuses for `patience_s` seconds.
        """
        request = self.engine.flush()
        deadline_s = self.clock.monotonic_s() + patience_s
        while request is not None:
            try:
                send(self.target, request, _FLUSH_TIMEOUT_S, self.clock)
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
