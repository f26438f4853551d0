"""Asking one running server, one request after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from launchers.clock import Clock
from sweeper.engines.base import Counters, Engine, Generation, StreamedResponse
from sweeper.errors import FailureKind, TrialError
from sweeper.http import ExchangeError, ExchangeTimeout, Target, get_page, send
from sweeper.measuring.host_load import SendAll
from sweeper.measuring.results import Answered, Asked, answered, grown, request_name, understood
from sweeper.records import Reference, RequestResult
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec

OnRequest = Callable[[RequestResult, int, int], None]

_COUNTERS_TIMEOUT_S = 5.0
_FLUSH_S = 5.0
_FLUSH_TIMEOUT_S = 30.0
_FLUSH_POLL_S = 0.1
_MAX_TRIES = 3


@dataclass(frozen=True)
class Bench:
    """What measuring takes besides the server and the load.

    `on_request` is called after each request with its result, how many are done and how many there are, warm-ups
    included. `config` is what the server runs under. `reference`: whom to stop for, when that far behind it in
    `objective_metric`, which is this workload's (empty: never). `send_all` sends many requests at once, from the
    host.
    """

    engine: Engine
    clock: Clock
    on_request: OnRequest
    config: ServerConfig
    reference: Reference | None = None
    send_all: SendAll | None = None
    objective_metric: str = ""


class Client:
    """Asks one server; remembers its counters after the last request, so that each request's share is known."""

    def __init__(self, target: Target, workload: WorkloadSpec, engine: Engine, clock: Clock) -> None:
        self._target = target
        self._workload = workload
        self._engine = engine
        self._clock = clock
        self.counters = self.read_counters()

    def ask(self, prompt: Prompt, repeat: int, max_tokens: int, pass_began_s: float) -> Answered:
        """One request, sent again when only the way to the host broke; then the counters. Raises TrialError."""
        which = request_name(prompt, repeat)
        for num_tries in range(1, _MAX_TRIES + 1):
            sent_at, sent_s = self._clock.now(), self._clock.monotonic_s()
            try:
                response, answer = self._exchange(prompt, max_tokens, which)
                break
            except TrialError:
                if num_tries == _MAX_TRIES or not self._target.mended():
                    raise
                # The server may still be at the first one, and would remember it.
                self.empty_caches(self._workload.request_timeout_s)
        before, self.counters = self.counters, self.read_counters()
        asked = Asked(prompt, repeat, sent_at, (sent_s - pass_began_s) * 1000, num_tries)
        # After an abandoned try the counters hold its share as well: then nothing is drawn from them.
        return answered(asked, response, answer, grown(before, self.counters) if num_tries == 1 else Counters())

    def empty_caches(self, patience_s: float = _FLUSH_S) -> None:
        """Empty what the server remembers of earlier requests; it must be idle for that.

        Raises TrialError when it refuses for `patience_s` seconds.
        """
        request = self._engine.flush()
        deadline_s = self._clock.monotonic_s() + patience_s
        while request is not None:
            try:
                answer = send(self._target, request, _FLUSH_TIMEOUT_S, self._clock)
                if self._engine.flushed(b"\n".join(line for _, line in answer.lines)):
                    return
                raise ExchangeError(f"{request.method} {request.path}: the server says that it could not")
            except ExchangeError as error:  # a server still ending the last request refuses
                if self._clock.monotonic_s() >= deadline_s and not self._target.mended():
                    message = f"the server's caches could not be emptied: {error}"
                    raise TrialError(FailureKind.BENCHMARK_FAILED, message, error.lines) from error
            self._clock.sleep(_FLUSH_POLL_S)

    def read_counters(self) -> Counters:
        """The server's totals; empty when it gives none, which costs a few derived numbers and nothing else."""
        try:
            page = get_page(self._target, self._engine.metrics_path, _COUNTERS_TIMEOUT_S)
        except ExchangeError:
            return Counters()
        return self._engine.counters(page.decode("utf-8", "replace"))

    def _exchange(self, prompt: Prompt, max_tokens: int, which: str) -> tuple[StreamedResponse, Generation]:
        """One request and its answer, understood. Raises TrialError."""
        request = self._engine.request(prompt, self._workload, max_tokens)
        try:
            response = send(self._target, request, self._workload.request_timeout_s, self._clock)
        except ExchangeTimeout as error:
            raise TrialError(FailureKind.SERVER_HANG, f"{which}: {error}", error.lines) from error
        except ExchangeError as error:
            raise TrialError(FailureKind.BENCHMARK_FAILED, f"{which}: {error}", error.lines) from error
        return response, understood(self._engine, response, which)
