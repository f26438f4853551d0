"""Measuring a running server: one request after another; what becomes of them is in figures.py."""

from __future__ import annotations

from sweeper.client import Bench, Client, OnRequest
from sweeper.figures import accept_definition, accepted_per_position, group_throughputs, metrics_of
from sweeper.http import Target
from sweeper.load import Load
from sweeper.records import Measurement
from sweeper.results import WARMUP_REPEAT, Answered, grown

__all__ = ["WARMUP_REPEAT", "Bench", "OnRequest", "measure"]


def measure(target: Target, load: Load, bench: Bench) -> Measurement:
    """Send the load to the server at `target`: warm-ups, then every prompt of each pass in order.

    Raises TrialError: SERVER_HANG when a request takes too long, BENCHMARK_FAILED when it is not answered or the
    answer makes no sense.
    """
    workload, clock, on_request = load.workload, bench.clock, bench.on_request
    client = Client(target, workload, bench.engine, clock)
    warmup_prompts = [load.warmup] * min(1, workload.warmup_max_requests)
    plan = [(prompt, number) for number in range(workload.repeats) for prompt in load.passes[number]]
    total = len(warmup_prompts) + len(plan)
    warmups: list[Answered] = []
    measured: list[Answered] = []
    began_s = clock.monotonic_s()
    for prompt in warmup_prompts:
        warmups.append(client.ask(prompt, WARMUP_REPEAT, workload.max_tokens, began_s))
        on_request(warmups[-1].result, len(warmups), total)
    warm_s = clock.monotonic_s()
    before = client.counters
    for prompt, repeat in plan:
        if prompt is load.passes[repeat][0]:
            client.empty_caches()  # a repeat must not be cheaper than the first pass
            pass_began_s = clock.monotonic_s()
        measured.append(client.ask(prompt, repeat, workload.max_tokens, pass_began_s))
        on_request(measured[-1].result, len(warmups) + len(measured), total)
    requests = [m.result for m in measured]
    return Measurement(
        requests=tuple(requests),
        warmups=tuple(w.result for w in warmups),
        metrics={
            **metrics_of(requests, gaps=[gap for m in measured for gap in m.gaps_ms]),
            **({"warmup_s": warm_s - began_s} if warmups else {}),
            "benchmark_s": clock.monotonic_s() - warm_s,
        },
        repeat_throughputs=tuple(group_throughputs(requests, lambda r: r.repeat).values()),
        prompt_throughputs=group_throughputs(requests, lambda r: r.prompt_id),
        class_throughputs=group_throughputs(requests, lambda r: r.prompt_class),
        accepted_per_position=accepted_per_position(requests)
        or grown(before, client.counters).accepted_per_position,
        accept_definition=accept_definition(requests),
    )
