"""Measuring a running server under one workload, one request after another: warm it up, then pass after pass."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sweeper.http import Target
from sweeper.measuring.client import Bench, Client, OnRequest
from sweeper.measuring.concurrent import measure_concurrent
from sweeper.measuring.figures import metrics_of
from sweeper.measuring.load import Load
from sweeper.measuring.results import WARMUP_REPEAT, Answered, grown
from sweeper.measuring.stopping import Estimate, SoFar, another_pass, hopeless, missing_passes
from sweeper.measuring.summary import Observed, Warmup, measurement_of
from sweeper.measuring.warmup import MAX_TOKENS, MIN_REQUESTS, settled, unsettled_doubt
from sweeper.records import Measurement, RequestResult
from sweeper.workload_spec import Prompt

MAY_NOT_SPECULATE = 1.1
"""Below this accept length a server may serve without speculation, which is no slow setting of it; a few prompts
are too little to tell."""

__all__ = ["WARMUP_REPEAT", "Bench", "OnRequest", "measure"]


def measure(target: Target, load: Load, bench: Bench) -> Measurement:
    """Send the load to the server at `target`: warm-ups until its speed has settled, then pass after pass.

    How many passes there are, and whether the first one ends early, is decided in stopping.py.

    Raises TrialError: SERVER_HANG when a request takes too long, BENCHMARK_FAILED when it is not answered or the
    answer makes no sense.
    """
    if not load.workload.sequential:
        return measure_concurrent(target, load, bench)
    run = _Run(target, load, bench)
    warmup = run.warm_up()
    began_s, before = bench.clock.monotonic_s(), run.client.counters
    estimate = None
    for prompts in run.passes(began_s):
        estimate = run.send(prompts)
        if estimate:
            break
    seen = Observed(
        measured=run.measured,
        duration_s=bench.clock.monotonic_s() - began_s,
        num_prompts=len(load.workload.prompts),
        warmup=warmup,
        growth=grown(before, run.client.counters),
        doubts=() if estimate else (run.missing_passes(),),
        greedy=load.workload.temperature == 0,
    )
    return measurement_of(seen, estimate, bench.objective_metric)


class _Run:
    """One server, one load, and what has been answered so far."""

    def __init__(self, target: Target, load: Load, bench: Bench) -> None:
        self.client = Client(target, load.workload, bench.engine, bench.clock)
        self.measured: list[Answered] = []
        self._load = load
        self._workload = load.workload
        self._bench = bench
        self._warmups: list[Answered] = []
        self._is_warm = False
        self._remembers = bench.engine.remembers(bench.config)
        self._num_passes = 1 if self._remembers else load.workload.repeats

    def warm_up(self) -> Warmup:
        """Send the same short request, from empty caches, until the speed has settled or the limit is met."""
        workload, clock = self._workload, self._bench.clock
        began_s = clock.monotonic_s()
        rates: list[float] = []
        while len(rates) < workload.warmup_max_requests and not settled(rates):
            if rates and clock.monotonic_s() - began_s >= workload.warmup_max_s:
                break
            self.client.empty_caches()
            max_tokens = min(MAX_TOKENS, workload.max_tokens)
            self._warmups.append(self.client.ask(self._load.warmup, WARMUP_REPEAT, max_tokens, began_s))
            rates.append(self._warmups[-1].result.output_throughput)
            self._tell(self._warmups[-1])
        self._is_warm = settled(rates)  # a cold server may look hopeless
        return Warmup(tuple(self._warmups), clock.monotonic_s() - began_s, unsettled_doubt(rates))

    def passes(self, began_s: float) -> Iterator[tuple[Prompt, ...]]:
        """The prompts of each pass that is worth its time. A server that remembers is sent each text once."""
        for number, prompts in enumerate(self._load.passes):
            elapsed_s = self._bench.clock.monotonic_s() - began_s
            if number and (self._remembers or not self._goes_on(elapsed_s)):
                return
            self._num_passes = max(self._num_passes, number + 1)
            yield prompts

    def send(self, prompts: tuple[Prompt, ...]) -> Estimate | None:
        """One pass, from empty caches on; ended early, with an estimate, when the first one leaves no hope."""
        bench, number = self._bench, len(self.measured) // len(prompts)
        self.client.empty_caches()  # a pass must not be cheaper than the one before
        began_s = bench.clock.monotonic_s()
        for prompt in prompts:
            self.measured.append(self.client.ask(prompt, number, self._workload.max_tokens, began_s))
            self._tell(self.measured[-1])
            if number == 0 and self._is_warm and (estimate := self._hopeless()):
                return estimate
        return None

    def missing_passes(self) -> str:
        """Why fewer passes were made than the workload asks for; else empty."""
        made = len(self.measured) // len(self._workload.prompts)
        return missing_passes(made, self._workload, self._remembers)

    def _results(self) -> list[RequestResult]:
        return [answered.result for answered in self.measured]

    def _hopeless(self) -> Estimate | None:
        """The estimate to end with, if the launch is to end here.

        Not where nothing would be spared. Nor while nothing shows that the speculation asked for is in force: a
        server without it is no slow setting of it, and one prompt without drafts does not tell them apart.
        """
        bench, results = self._bench, self._results()
        if len(results) == self._num_passes * len(self._workload.prompts):
            return None
        estimate = hopeless(results, self._workload, bench.reference, bench.objective_metric)
        if estimate is None:
            return None
        metrics = metrics_of(results)
        undecided = metrics.get("accept_length", math.inf) < MAY_NOT_SPECULATE
        return None if undecided or bench.engine.bypass(bench.config, metrics) else estimate

    def _goes_on(self, elapsed_s: float) -> bool:
        return another_pass(SoFar(self._results(), elapsed_s), self._workload, self._bench.reference)

    def _tell(self, answered: Answered) -> None:
        """Report a request: how many are done, and how many there are as far as that is known."""
        num_warmups = len(self._warmups)
        if not self.measured:
            num_warmups = max(num_warmups, min(MIN_REQUESTS, self._workload.warmup_max_requests))
        total = num_warmups + self._num_passes * len(self._workload.prompts)
        self._bench.on_request(answered.result, len(self._warmups) + len(self.measured), total)
