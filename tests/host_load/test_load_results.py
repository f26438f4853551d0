"""What a load amounts to: arrivals, walls, failures, counters, and doubts about the client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import Counters
from sweeper.errors import FailureKind, TrialError
from sweeper.measuring.host_load import LoadReport
from sweeper.measuring.load_results import (
    arrivals_of,
    client_doubts,
    client_metrics,
    counted,
    require_answers,
    summed,
    wall_s,
)
from sweeper.measuring.load_wire import Exchange
from sweeper.metrics import check_metrics
from sweeper.workload_spec import Prompt, WorkloadSpec

PROMPTS = tuple(Prompt(id=f"p{i}", text="t") for i in range(3))


def workload(rate: float | None = None, seed: int = 1) -> WorkloadSpec:
    return WorkloadSpec(
        name="w",
        prompts=PROMPTS,
        max_tokens=8,
        temperature=0,
        seed=seed,
        concurrency=8,
        request_rate=rate,
        repeats=2,
        request_timeout_s=10,
    )


def test_arrivals_are_the_same_in_every_launch_and_others_in_every_pass() -> None:
    assert arrivals_of(workload(5), 0, 100) == arrivals_of(workload(5), 0, 100)
    assert arrivals_of(workload(5), 0, 100) != arrivals_of(workload(5), 1, 100)
    assert arrivals_of(workload(5), 0, 100) != arrivals_of(workload(5, seed=2), 0, 100)
    assert arrivals_of(workload(5), 0, 3).offsets_s == pytest.approx((0.0, 0.6369, 0.6578), abs=1e-4)


@given(st.floats(0.1, 1000), st.integers(1, 50))
def test_arrivals_begin_at_once_and_never_go_back(rate: float, count: int) -> None:
    offsets = arrivals_of(workload(rate), 0, count).offsets_s
    assert len(offsets) == count
    assert offsets[0] == 0
    assert list(offsets) == sorted(offsets)


def test_arrivals_keep_their_rate_on_average() -> None:
    assert arrivals_of(workload(20), 0, 10_000).offsets_s[-1] == pytest.approx(500, rel=0.03)


def test_without_a_rate_each_next_one_follows_an_end() -> None:
    assert arrivals_of(workload(), 0, 3).offsets_s == ()


def test_the_wall_goes_from_the_first_sent_to_the_last_byte() -> None:
    exchanges = [
        Exchange(10, e2e_latency_ms=500),
        Exchange(5, e2e_latency_ms=100),
        Exchange(400, e2e_latency_ms=200),
    ]
    assert wall_s(exchanges) == pytest.approx(0.595)


def test_requests_that_failed_are_counted_and_the_first_by_time_is_named() -> None:
    exchanges = [
        Exchange(0, e2e_latency_ms=50),
        Exchange(20, error="closed"),
        Exchange(10, error="status 503"),
    ]
    with pytest.raises(TrialError) as failed:
        require_answers(PROMPTS, exchanges)
    assert failed.value.kind is FailureKind.BENCHMARK_FAILED
    assert str(failed.value) == "2 of 3 requests failed, of them first prompt 'p2': status 503"
    assert failed.value.evidence == ("closed", "status 503")


def test_a_request_that_hung_is_a_server_that_hangs() -> None:
    exchanges = [Exchange(0, error="too late", hung=True), Exchange(0, error="not sent", hung=True)]
    with pytest.raises(TrialError, match="2 of 2 requests failed, of them first prompt 'p0': too late") as failed:
        require_answers(PROMPTS[:2], exchanges)
    assert failed.value.kind is FailureKind.SERVER_HANG


def test_counters_of_all_passes_are_added_and_what_one_lacks_is_unknown() -> None:
    one = Counters(10, 40, 15, (10, 5))
    assert summed([one, one]) == Counters(20, 80, 30, (20, 10))
    assert summed([one, Counters(1, None, 2, (1, 0, 1))]) == Counters(11, None, 17, (11, 5, 1))


def test_the_accept_length_comes_from_the_totals() -> None:
    found = counted(Counters(20, 80, 30))
    assert found["accept_length"] == 2.5
    assert found["accept_rate"] == 0.375
    assert check_metrics(found) == found
    assert counted(Counters()) == {}
    assert counted(Counters(0, 0, 0)) == {"num_verify_steps": 0, "num_drafted_tokens": 0, "num_accepted_tokens": 0}


def test_a_client_that_may_be_the_limit_is_doubted() -> None:
    busy = client_metrics([LoadReport((), 3.0, 4.0)], workload())
    assert busy == {"client_cpu_pct": 75.0}
    assert "75 % of a core" in client_doubts(busy)[0]
    assert client_doubts(client_metrics([LoadReport((), 2.0, 4.0)], workload())) == ()


def test_a_client_that_sends_late_is_doubted() -> None:
    exchanges = tuple(Exchange(0, late_ms=late, e2e_latency_ms=1) for late in (0.0, 0.0, 1000.0))
    late = client_metrics([LoadReport(exchanges, 0.1, 4.0)], workload(rate=5))
    assert late["client_lag_ms"] == pytest.approx(980)
    assert "980 ms" in client_doubts(late)[0]
    assert "client_lag_ms" not in client_metrics([LoadReport(exchanges, 0.1, 4.0)], workload())
