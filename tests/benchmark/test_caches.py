"""What a server remembers flatters no number: shown on one with a prefix cache and on one with an n-gram pool."""

from __future__ import annotations

import pytest

from sweeper.measuring.benchmark import Bench, measure
from sweeper.records import Measurement
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.benchmark.caching import CacheAware, Caching
from tests.fakes import load_of

pytestmark = pytest.mark.host
CACHE = "a cache of the server may flatter them"
SUBJECTS = ("rivers", "bridges", "trains")


def measured(
    server: Caching, engine: CacheAware, *, repeats: int = 3, warmups: int = 12, fresh: bool = True
) -> Measurement:
    workload = WorkloadSpec(
        name="w",
        prompts=tuple(Prompt(id=s, text=f"Please tell me all that you know of {s}") for s in SUBJECTS),
        max_tokens=8,
        repeats=repeats,
        warmup_max_requests=warmups,
        fresh_prefixes=fresh,
        temperature=0,
        seed=0,
        request_timeout_s=30,
    )
    with server.running() as target:
        return measure(target, load_of(workload), Bench(engine, server.clock, lambda *_: None, ServerConfig()))


def cold_throughput() -> float:
    """What a server without any cache does in one pass."""
    return measured(Caching(), CacheAware(), repeats=1).metrics["output_throughput"]


def test_a_prefix_cache_that_is_emptied_makes_no_pass_faster_than_on_a_server_without_one() -> None:
    plain = measured(Caching(), CacheAware(), fresh=False)
    cached = measured(Caching(has_prefix_cache=True), CacheAware(), fresh=False)
    # Within a pass the prompts begin alike: what they share is the cache's honest gain. It does not grow.
    first, *later = cached.repeat_throughputs
    assert later == pytest.approx([first, first])
    assert first > plain.repeat_throughputs[0]
    assert cached.doubts == ()


def test_fresh_prefixes_alone_keep_a_prefix_cache_from_knowing_the_prompts() -> None:
    cached = measured(Caching(has_prefix_cache=True), CacheAware(flushes=False))
    first, *later = cached.repeat_throughputs
    assert all(throughput <= first for throughput in later)
    assert cached.doubts == ()


def test_a_prefix_cache_that_knows_the_prompts_is_noticed() -> None:
    cached = measured(Caching(has_prefix_cache=True), CacheAware(flushes=False), fresh=False)
    assert cached.repeat_throughputs[1] > 1.1 * cached.repeat_throughputs[0]
    (doubt,) = cached.doubts
    assert "as they reach the first token sooner" in doubt
    assert CACHE in doubt


def test_a_server_with_an_ngram_pool_is_measured_with_each_text_once() -> None:
    pooled = measured(Caching(has_pool=True), CacheAware(told="its pool outlives requests"))
    assert [r.repeat for r in pooled.requests] == [0, 0, 0]
    assert pooled.metrics["output_throughput"] == pytest.approx(cold_throughput())
    assert pooled.metrics["num_repeats"] == 1
    assert pooled.doubts == ("1 instead of 3 passes: its pool outlives requests",)


def test_an_ngram_pool_that_nobody_knew_of_is_noticed() -> None:
    pooled = measured(Caching(has_pool=True), CacheAware())
    assert pooled.metrics["output_throughput"] > 1.1 * cold_throughput()  # flattered, which is why it is said
    (doubt,) = pooled.doubts
    assert doubt.startswith("later passes keep 100 % more tokens per decode step")
    assert CACHE in doubt


def test_a_server_without_caches_is_not_suspected() -> None:
    plain = measured(Caching(), CacheAware())
    assert plain.metrics["num_repeats"] == 3
    assert plain.doubts == ()


# A server that is not warm yet.


SPEEDS = (1187 / 10996, 7653 / 10996, 1.0)
"""Of the first three requests of a real server."""


def test_warm_ups_go_on_until_the_speed_has_settled_and_none_of_them_counts() -> None:
    warmed = measured(Caching(speed=lambda n: SPEEDS[min(n, 2)]), CacheAware())
    assert warmed.metrics["num_warmup_requests"] == 6
    assert warmed.repeat_throughputs == pytest.approx(measured(Caching(), CacheAware()).repeat_throughputs)
    assert warmed.metrics["num_requests"] == 9
    assert warmed.doubts == ()


def test_a_warm_up_that_ends_at_its_limit_is_told() -> None:
    warmed = measured(Caching(speed=lambda n: SPEEDS[min(n, 2)]), CacheAware(), warmups=3)
    assert warmed.metrics["num_warmup_requests"] == 3
    (doubt,) = warmed.doubts
    assert doubt.startswith(
        "the warm-up ended at its limit, after 3 requests, before the speed was seen to settle"
    )


def test_a_server_that_grows_faster_while_it_is_measured_is_noticed() -> None:
    server = Caching(speed=lambda n: 1.0 if n < 6 else 1.5)  # after three warm-ups and the first pass
    (doubt,) = measured(server, CacheAware()).doubts
    # 1.5 times as fast, at a prompt that is a fresh prefix longer.
    assert doubt == "later passes are faster by 40 % than the first: a server still warming up, or a busy host"
