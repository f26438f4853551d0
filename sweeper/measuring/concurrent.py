"""Measuring a running server with many requests at once: warm it up in rounds, then send whole passes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from sweeper.engines.base import Counters
from sweeper.errors import FailureKind, TrialError
from sweeper.http import Target
from sweeper.measuring.client import Bench, Client
from sweeper.measuring.host_load import Arrivals, LoadReport
from sweeper.measuring.load import Load
from sweeper.measuring.load_results import (
    arrivals_of,
    client_doubts,
    client_metrics,
    counted,
    places_doubt,
    require_answers,
    summed,
    wall_s,
)
from sweeper.measuring.load_wire import Exchange
from sweeper.measuring.results import WARMUP_REPEAT, Answered, Asked, answered, grown, request_name, understood
from sweeper.measuring.stopping import SoFar, another_pass, missing_passes
from sweeper.measuring.summary import Observed, Warmup, measurement_of
from sweeper.measuring.warmup import MAX_TOKENS, settled, unsettled_doubt
from sweeper.records import Measurement
from sweeper.workload_spec import Prompt

FROM_COUNTERS = "1 + accepted drafts / verify steps, from the server's counters over all measured requests"
_MAX_TRIES = 3


def measure_concurrent(target: Target, load: Load, bench: Bench) -> Measurement:
    """Send the load to the server at `target`: warm-up rounds until its speed has settled, then pass after pass.

    How many passes there are is decided in stopping.py; none ends early, since its requests are sent at once.

    Raises TrialError: SERVER_HANG when a request takes too long, HOST_LOST, BENCHMARK_FAILED when one is not
    answered or the answer makes no sense.
    """
    run = _Run(target, load, bench)
    warmup = run.warm_up()
    began_s = bench.clock.monotonic_s()
    while run.goes_on(bench.clock.monotonic_s() - began_s):
        run.send_pass(load.passes[len(run.walls_s)])
    cost = client_metrics(run.reports, load.workload)
    seen = Observed(
        measured=run.measured,
        duration_s=bench.clock.monotonic_s() - began_s,
        num_prompts=len(load.passes[0]),
        warmup=warmup,
        growth=summed(run.growths),
        walls_s=run.walls_s,
        doubts=(run.missing_passes(), run.empty_places(), *client_doubts(cost)),
        greedy=load.workload.temperature == 0,
        cross_checked=bench.engine.times_whole_requests,
    )
    measurement = measurement_of(seen)
    metrics = {**counted(seen.growth), **measurement.metrics, **cost}
    definition = measurement.accept_definition or (FROM_COUNTERS if "accept_length" in metrics else "")
    return measurement.model_copy(update={"metrics": metrics, "accept_definition": definition})


class _Run:
    """One server, one load, and what has been answered so far."""

    def __init__(self, target: Target, load: Load, bench: Bench) -> None:
        if bench.send_all is None:
            raise ValueError(f"workload {load.workload.name!r}: nothing is given that sends many requests at once")
        self.measured: list[Answered] = []
        self.walls_s: list[float] = []
        self.growths: list[Counters] = []
        self.reports: list[LoadReport] = []
        self._client = Client(target, load.workload, bench.engine, bench.clock)
        self._target = target
        self._load = load
        self._workload = load.workload
        self._bench = bench
        self._send_all = bench.send_all
        self._remembers = bench.engine.remembers(bench.config)
        self._num_done = 0

    def warm_up(self) -> Warmup:
        """Send rounds of the same short request, from empty caches, until the speed has settled.

        A round is as many requests as can be under way at once, so that the server meets batches of that size. It
        counts as one of `warmup_max_requests`. With a `request_rate` its requests arrive as the load's do, the
        same way in each round, and the speed is that of single requests: a rate's throughput is the rate's.
        """
        workload, clock = self._workload, self._bench.clock
        began_s = clock.monotonic_s()
        prompts = [self._load.warmup] * self._round_size()
        arrivals = arrivals_of(workload, WARMUP_REPEAT, len(prompts))
        rates: list[float] = []
        warmups: list[Answered] = []
        while len(rates) < workload.warmup_max_requests and not settled(rates):
            if rates and clock.monotonic_s() - began_s >= workload.warmup_max_s:
                break
            done, report, _ = self._send(prompts, WARMUP_REPEAT, arrivals)
            rates.append(sum(one.result.num_output_tokens for one in done) / self._spent_s(report))
            warmups += done
            self._tell(done)
        return Warmup(warmups, clock.monotonic_s() - began_s, unsettled_doubt(rates))

    def _round_size(self) -> int:
        """Requests in a round of the warm-up; with a `request_rate` those of its share of `warmup_max_s`."""
        workload = self._workload
        most = min(workload.concurrency, len(self._load.passes[0]))
        if workload.request_rate is None:
            return most
        share_s = workload.warmup_max_s / max(1, workload.warmup_max_requests)
        return min(most, math.ceil(workload.request_rate * share_s))

    def _spent_s(self, report: LoadReport) -> float:
        """Seconds of a round's work: from its beginning to its end, or, where requests arrive, of all of them."""
        if self._workload.request_rate is None:
            return wall_s(report.exchanges)
        return sum(exchange.e2e_latency_ms for exchange in report.exchanges) / 1000

    def goes_on(self, elapsed_s: float) -> bool:
        """Whether one more pass is to be made. A server that remembers is sent each text once."""
        if not self.walls_s:
            return True
        if self._remembers or len(self.walls_s) >= len(self._load.passes):
            return False
        so_far = SoFar([one.result for one in self.measured], elapsed_s, self.walls_s)
        return another_pass(so_far, self._workload, self._bench.reference)

    def send_pass(self, prompts: Sequence[Prompt]) -> None:
        """One pass, from empty caches on."""
        number = len(self.walls_s)
        arrivals = arrivals_of(self._workload, number, len(prompts))
        done, report, growth = self._send(prompts, number, arrivals)
        self.walls_s.append(wall_s(report.exchanges))
        self.growths.append(growth)
        self.reports.append(report)
        self.measured += done
        self._tell(done)

    def missing_passes(self) -> str:
        """Why fewer passes were made than the workload asks for; empty when there were enough."""
        return missing_passes(len(self.walls_s), self._workload, self._remembers)

    def empty_places(self) -> str:
        """Whether the prompts cannot fill the places; empty when they can, and where a rate decides."""
        return places_doubt(self._load) if self._workload.request_rate is None else ""

    def _send(
        self, prompts: Sequence[Prompt], repeat: int, arrivals: Arrivals
    ) -> tuple[list[Answered], LoadReport, Counters]:
        """Send these prompts, all anew when only the way to the host broke; and what the counters grew by.

        Raises TrialError.
        """
        bench, workload = self._bench, self._workload
        max_tokens = min(MAX_TOKENS, workload.max_tokens) if repeat == WARMUP_REPEAT else workload.max_tokens
        requests = [bench.engine.request(prompt, workload, max_tokens) for prompt in prompts]
        patience: dict[str, float] = {}
        for num_tries in range(1, _MAX_TRIES + 1):
            self._client.empty_caches(**patience)
            before = self._client.read_counters()
            sent_at = bench.clock.now()
            try:
                report = self._send_all(requests, arrivals, workload.request_timeout_s)
                break
            except TrialError:
                if num_tries == _MAX_TRIES or not self._target.mended():
                    raise
                patience = {"patience_s": workload.request_timeout_s}  # the server may still be at them
        require_answers(prompts, report.exchanges)
        growth = grown(before, self._client.read_counters())
        done = []
        for prompt, exchange in zip(prompts, report.exchanges, strict=True):
            moment = sent_at + datetime.timedelta(milliseconds=exchange.sent_ms)
            asked = Asked(prompt, repeat, moment, exchange.sent_ms, num_tries)
            done.append(self._answered(asked, exchange))
        return done, report, growth

    def _answered(self, asked: Asked, exchange: Exchange) -> Answered:
        """The answer, understood. Raises TrialError."""
        which = request_name(asked.prompt, asked.repeat)
        try:
            response = exchange.response()
        except ValueError as error:
            raise TrialError(FailureKind.BENCHMARK_FAILED, f"{which}: {error}") from error
        # What the server counts meanwhile is of all requests together.
        return answered(asked, response, understood(self._bench.engine, response, which), Counters())

    def _tell(self, done: Sequence[Answered]) -> None:
        """Report each of these requests; how many are to come is known but for warm-ups and further passes."""
        num_passes = 1 if self._remembers else self._workload.repeats
        num_to_come = max(0, num_passes - len(self.walls_s)) * len(self._load.passes[0])
        total = self._num_done + len(done) + num_to_come
        for one in done:
            self._num_done += 1
            self._bench.on_request(one.result, self._num_done, total)
