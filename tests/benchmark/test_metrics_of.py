"""The numbers drawn from raw requests: their definitions, and that nothing is invented."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.measuring.figures import (
    accepted_per_position,
    gaps_ms,
    group_throughputs,
    metrics_of,
    percentile_99,
    repeat_throughputs,
    throughput,
)
from sweeper.metrics import check_metrics
from sweeper.records import RequestResult
from tests.fakes import EPOCH


def request(
    tokens: int,
    e2e_ms: float,
    *,
    ttft_ms: float | None = None,
    repeat: int = 0,
    drafts: tuple[int | None, int | None, int | None] = (None, None, None),
) -> RequestResult:
    """`drafts`: drafted and accepted tokens, verify steps."""
    return RequestResult(
        prompt_id="p",
        prompt_class="copy",
        repeat=repeat,
        sent_at=EPOCH,
        e2e_latency_ms=e2e_ms,
        ttft_ms=ttft_ms,
        num_output_tokens=tokens,
        num_drafted_tokens=drafts[0],
        num_accepted_tokens=drafts[1],
        num_verify_steps=drafts[2],
    )


counts = st.none() | st.integers(0, 50)
requests = st.builds(
    request,
    st.integers(1, 500),
    st.floats(1, 1e6),
    ttft_ms=st.none() | st.floats(0, 1e6),
    repeat=st.integers(0, 3),
    drafts=st.tuples(counts, counts, counts),
)


def test_throughput_is_all_tokens_over_all_time_and_not_the_mean_of_rates() -> None:
    fast, slow = request(100, 1000), request(10, 1000)
    assert throughput([fast, slow]) == pytest.approx(55)
    found = metrics_of([fast, request(10, 4000)])
    assert found["output_throughput"] == pytest.approx(22)
    assert found["mean_prompt_throughput"] == pytest.approx((100 + 2.5) / 2)


def test_decode_rates_start_after_the_first_token() -> None:
    found = metrics_of([request(11, 1100, ttft_ms=100), request(21, 600, ttft_ms=200)])
    assert found["decode_throughput"] == pytest.approx(30 / 1.4)
    assert found["tpot_ms"] == pytest.approx((100 + 20) / 2)
    assert found["ttft_ms"] == pytest.approx(150)


def test_one_token_has_no_decode_rate() -> None:
    assert not {"decode_throughput", "tpot_ms"} & metrics_of([request(1, 100, ttft_ms=90)]).keys()


def test_without_timestamps_nothing_is_said_about_the_first_token() -> None:
    assert not {"ttft_ms", "tpot_ms", "decode_throughput"} & metrics_of([request(9, 100)]).keys()


def test_accept_length_counts_the_bonus_token_per_verify_step() -> None:
    found = metrics_of([request(22, 100, drafts=(16, 14, 4))])  # a real request: the server logged mean len = 4.50
    assert found["accept_length"] == pytest.approx(4.5)
    assert found["accept_rate"] == pytest.approx(0.875)
    assert found["tokens_per_step"] == pytest.approx(22 / 8)


def test_nothing_drafted_is_a_zero_and_has_no_rate() -> None:
    found = metrics_of([request(9, 100, drafts=(0, 0, 0))])
    assert found["num_drafted_tokens"] == 0
    assert found["tokens_per_step"] == 1
    assert not {"accept_rate", "accept_length"} & found.keys()


def test_a_count_that_one_request_lacks_is_not_summed() -> None:
    found = metrics_of([request(9, 100, drafts=(4, 3, 2)), request(9, 100)])
    assert not {"num_drafted_tokens", "num_accepted_tokens", "accept_length", "tokens_per_step"} & found.keys()


def test_spread_is_that_of_the_repeats() -> None:
    found = metrics_of([request(9, 100, repeat=0), request(11, 100, repeat=1)])
    assert found["repeat_spread_pct"] == pytest.approx(20)
    assert "repeat_spread_pct" not in metrics_of([request(9, 100)])


@given(st.lists(requests, min_size=1, max_size=8))
def test_every_metric_is_known_finite_and_legal(measured: list[RequestResult]) -> None:
    found = metrics_of(measured)
    assert check_metrics(found) == found


@given(st.lists(requests, min_size=1, max_size=8))
def test_throughput_lies_between_those_of_its_groups(measured: list[RequestResult]) -> None:
    groups = group_throughputs(measured, lambda r: r.repeat).values()
    assert min(groups) * (1 - 1e-9) <= throughput(measured) <= max(groups) * (1 + 1e-9)


def test_requests_that_overlap_are_divided_by_the_wall_clock_of_their_passes() -> None:
    overlapping = [request(100, 1000, repeat=n // 2) for n in range(4)]
    found = metrics_of(overlapping, walls_s=(1.0, 1.5))
    assert found["output_throughput"] == pytest.approx(400 / 2.5)
    assert found["request_throughput"] == pytest.approx(4 / 2.5)
    assert repeat_throughputs(overlapping, (1.0, 1.5)) == pytest.approx((200, 200 / 1.5))
    assert repeat_throughputs(overlapping) == pytest.approx((100, 100))  # one after another


def test_percentiles_are_interpolated_between_the_two_nearest_values() -> None:
    assert percentile_99([7.0]) == 7
    assert percentile_99([0.0, 100.0]) == pytest.approx(99)
    assert percentile_99([float(n) for n in range(101)]) == pytest.approx(99)
    assert gaps_ms((10.0, 15.0, 35.0)) == (5, 20)
    found = metrics_of([request(9, 100, ttft_ms=t) for t in (10.0, 20.0)], gaps=(5.0, 15.0))
    assert found["ttft_p99_ms"] == pytest.approx(19.9)
    assert found["itl_p99_ms"] == pytest.approx(14.9)


def test_the_servers_own_time_is_compared_over_the_requests_that_have_one() -> None:
    timed = request(9, 1050).model_copy(update={"server_e2e_ms": 1000.0})
    assert metrics_of([timed, request(9, 9000)])["server_gap_pct"] == pytest.approx(5)
    assert "server_gap_pct" not in metrics_of([request(9, 100)])


def test_acceptance_by_position_is_drawn_from_the_requests_own_histograms() -> None:
    counted = request(100, 10, drafts=(12, 7, 6)).model_copy(update={"accept_histogram": (2, 1, 3)})
    plain = request(100, 10)
    assert accepted_per_position([counted, counted, plain]) == (8, 6)  # 1+3 accepted one or more, 3 two
    assert accepted_per_position([counted, request(100, 10, drafts=(12, 7, 6))]) == ()
    assert metrics_of([counted])["accept_length"] == pytest.approx(1 + 7 / 6)
    assert metrics_of([counted])["num_verify_steps"] == 6
