"""How long a launch is measured: stopped early without hope, longer where passes differ, never beyond its time."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from sweeper.engines.base import Generation, StreamedResponse
from sweeper.measuring.benchmark import Bench, measure
from sweeper.measuring.results import MAX_TEXT_BYTES
from sweeper.records import Measurement, Reference
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.benchmark.caching import CacheAware, Caching
from tests.fakes import load_of

pytestmark = pytest.mark.host
THROUGHPUT = "output_throughput"
NUM_WARMUPS = 3


def workload(**more: object) -> WorkloadSpec:
    fields: dict[str, object] = {
        "name": "w",
        "prompts": tuple(Prompt(id=f"p{n}", text=f"Prompt {n}", prompt_class=f"c{n % 2}") for n in range(4)),
        "max_tokens": 100,
        "repeats": 2,
        "temperature": 0,
        "seed": 0,
        "request_timeout_s": 30,
    }
    return WorkloadSpec.model_validate(fields | more)


def measured(
    server: Caching, spec: WorkloadSpec, reference: Reference | None = None, metric: str = THROUGHPUT
) -> tuple[Measurement, list[tuple[int, int]]]:
    """The measurement, and what was told after each request: how many are done, of how many."""
    told: list[tuple[int, int]] = []
    bench = Bench(
        CacheAware(),
        server.clock,
        lambda _, done, total: told.append((done, total)),
        ServerConfig(),
        reference,
        objective_metric=metric,
    )
    with server.running() as target:
        return measure(target, load_of(spec), bench), told


def best_so_far(factor: float) -> Reference:
    """A reference so many times as fast as this server, prompt by prompt."""
    known, _ = measured(Caching(), workload(repeats=1))
    return Reference(
        trial_number=7,
        value=known.metrics[THROUGHPUT] * factor,
        prompt_throughputs={prompt: rate * factor for prompt, rate in known.prompt_throughputs.items()},
        launch_noise_pct=1.5,
        launch_noise_degrees=3,
        prompt_spread_pct=5.0,
    )


def test_a_hopeless_launch_is_stopped_after_two_prompts_and_its_value_is_an_estimate() -> None:
    reference = best_so_far(2.0)
    stopped, told = measured(Caching(), workload(), reference)
    assert [r.prompt_id for r in stopped.requests] == ["p0", "p1"]
    assert stopped.estimated.startswith("stopped after 2 of 4 prompts: 50 % (95 % interval")
    assert "slower than trial 7" in stopped.estimated
    assert stopped.metrics[THROUGHPUT] == pytest.approx(reference.value / 2, rel=0.02)
    assert stopped.metrics["num_repeats"] == 0.5
    assert list(stopped.prompt_throughputs) == ["p0", "p1"]
    assert stopped.repeat_throughputs == ()
    assert stopped.doubts == ()
    assert told == [(1, 11), (2, 11), (3, 11), (4, 11), (5, 11)]


def test_a_server_that_was_not_seen_to_be_warm_is_never_given_up() -> None:
    cold, _ = measured(Caching(), workload(warmup_max_requests=0), best_so_far(2.0))
    assert cold.estimated == ""
    assert len(cold.requests) == 8


def test_a_launch_as_fast_as_the_best_is_measured_to_its_end() -> None:
    whole, told = measured(Caching(), workload(), best_so_far(1.0))
    assert whole.estimated == ""
    assert len(whole.requests) == 8
    assert told[-1] == (11, 11)


def test_the_last_request_of_a_launch_is_never_made_an_estimate_of_what_is_known() -> None:
    whole, _ = measured(
        Caching(), workload(repeats=1, prompts=(Prompt(id="p0", text="Prompt 0"),)), best_so_far(3)
    )
    assert whole.estimated == ""
    assert whole.repeat_throughputs == (whole.metrics[THROUGHPUT],)


class NeverDrafts(CacheAware):
    """Was asked to speculate, and nothing shows that it does."""

    def bypass(self, config: ServerConfig, metrics: Mapping[str, float]) -> str:
        return "not one token was drafted"


def test_a_launch_that_may_not_speculate_at_all_is_no_slow_one_and_goes_on() -> None:
    server = Caching()
    bench = Bench(
        NeverDrafts(), server.clock, lambda *_: None, ServerConfig(), best_so_far(3), objective_metric=THROUGHPUT
    )
    with server.running() as target:
        whole = measure(target, load_of(workload()), bench)
    assert len(whole.requests) == 8
    assert whole.estimated == ""


class KeepsNothing(CacheAware):
    """Drafts, and hardly a draft is ever kept: too few steps so far to say that it does not speculate."""

    def parse(self, response: StreamedResponse) -> Generation:
        answer = super().parse(response)
        return replace(answer, num_verify_steps=answer.num_output_tokens - 1, num_accepted_tokens=0)


def test_a_launch_whose_drafts_are_never_kept_is_measured_to_its_end() -> None:
    server = Caching()
    bench = Bench(
        KeepsNothing(), server.clock, lambda *_: None, ServerConfig(), best_so_far(3), objective_metric=THROUGHPUT
    )
    with server.running() as target:
        whole = measure(target, load_of(workload()), bench)
    assert whole.metrics["accept_length"] == 1.0
    assert whole.estimated == ""


def slower_in_pass(factor: float, *, number: int) -> Callable[[int], float]:
    """The speed of a server that is warm from the start, and slower in one pass of four prompts."""
    return lambda n: factor if (n - NUM_WARMUPS) // 4 == number else 1.0


def test_passes_that_differ_are_followed_by_more_and_the_total_told_grows_with_them() -> None:
    server = Caching(speed=slower_in_pass(0.8, number=1))
    more, told = measured(server, workload(max_repeats=4))
    assert more.metrics["num_repeats"] == 4
    assert len(more.repeat_throughputs) == 4
    assert told[NUM_WARMUPS + 7 : NUM_WARMUPS + 9] == [(11, 11), (12, 15)]
    assert told[-1] == (19, 19)


def test_passes_that_agree_are_not_followed_by_more() -> None:
    settled, _ = measured(Caching(), workload(fresh_prefixes=False, max_repeats=4))
    assert settled.metrics["num_repeats"] == 2


def test_when_the_time_is_up_no_pass_begins_and_that_is_told() -> None:
    short, _ = measured(Caching(), workload(max_measure_s=1))
    assert [r.repeat for r in short.requests] == [0, 0, 0, 0]  # the one that has begun is finished
    assert short.doubts == ("1 instead of 2 passes: max_measure_s, 1 s, was over",)


def test_warm_ups_end_when_their_time_is_up() -> None:
    server = Caching(speed=lambda n: float(n + 1))
    cold, _ = measured(server, workload(warmup_max_s=3))
    assert cold.metrics["num_warmup_requests"] == 2
    assert cold.doubts[0].startswith("the warm-up ended at its limit, after 2 requests")


# What is kept of each request.


class Talkative(CacheAware):
    """Its answers are long, and the server has a time of its own."""

    def parse(self, response: StreamedResponse) -> Generation:
        answer = super().parse(response)
        return dataclasses.replace(
            answer,
            text="é" * MAX_TEXT_BYTES,
            chunk_ms=(100.0, 200.0, 300.0, 900.0),
            server_e2e_ms=response.e2e_latency_ms * 0.95,
        )


def test_gaps_server_times_and_bounded_text_are_kept_of_each_request() -> None:
    server = Caching()
    with server.running() as target:
        whole = measure(
            target, load_of(workload()), Bench(Talkative(), server.clock, lambda *_: None, ServerConfig())
        )
    request = whole.requests[0]
    assert request.itl_p99_ms == pytest.approx(100 + 500 * 0.98)  # of 100, 100 and 600
    assert whole.metrics["itl_p99_ms"] == pytest.approx(600)
    assert request.output_text == "é" * (MAX_TEXT_BYTES // 2)
    assert request.output_sha256 == hashlib.sha256(("é" * MAX_TEXT_BYTES).encode()).hexdigest()
    assert whole.metrics["server_gap_pct"] == pytest.approx(100 * (1 / 0.95 - 1))
    assert "5.3 % above the server's own" in whole.doubts[0]
    assert {"ttft_p99_ms", "request_throughput"} <= whole.metrics.keys()
    assert list(whole.class_throughputs) == ["c0", "c1"]


def test_requests_are_placed_in_time_within_their_pass() -> None:
    whole, _ = measured(Caching(), workload())
    first, second = whole.requests[0], whole.requests[1]
    assert first.started_ms == 0
    assert second.started_ms == pytest.approx(first.e2e_latency_ms)
    assert whole.requests[4].started_ms == 0
