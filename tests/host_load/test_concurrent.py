"""Many requests at once, measured: with the real client against a server whose streams and counters are exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from launchers.clock import SystemClock
from sweeper.engines.base import Engine, HttpRequest
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.sglang import SGLang
from sweeper.errors import FailureKind, TrialError
from sweeper.http import Target
from sweeper.measuring.client import Bench, OnRequest
from sweeper.measuring.concurrent import FROM_COUNTERS, measure_concurrent
from sweeper.measuring.host_load import Arrivals, HostLoad, LoadReport, SendAll
from sweeper.measuring.load import WARMUP_ID
from sweeper.measuring.results import WARMUP_REPEAT
from sweeper.records import Measurement, RequestResult
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.fakes import load_of
from tests.host_load.streaming import Streaming

pytestmark = pytest.mark.host


def workload(**changes: Any) -> WorkloadSpec:
    fields = {
        "name": "busy",
        "prompts": tuple(Prompt(id=f"p{i}", text=f"text {i}", prompt_class="ab"[i % 2]) for i in range(6)),
        "max_tokens": 20,
        "temperature": 0,
        "seed": 1,
        "concurrency": 3,
        "repeats": 2,
        "warmup_max_requests": 0,
        "request_timeout_s": 20,
    }
    return WorkloadSpec.model_validate({**fields, **changes})


def measured(
    server: Streaming,
    load: HostLoad | None,
    *,
    engine: Engine | None = None,
    send_all: SendAll | None = None,
    on_request: OnRequest = lambda *_: None,
    mended: Any = lambda: False,
    **changes: Any,
) -> Measurement:
    sender = send_all or (load.send_all if load else None)
    bench = Bench(engine or LlamaCpp(), SystemClock(), on_request, ServerConfig(), send_all=sender)
    target = Target(server.url, mended=mended)
    return measure_concurrent(target, load_of(workload(**changes)), bench)


def test_all_tokens_of_a_pass_count_over_its_wall_clock_time(server: Streaming, load: HostLoad) -> None:
    server.rate = 200.0
    found = measured(server, load, max_tokens=30)
    metrics = found.metrics
    assert metrics["num_output_tokens"] == 2 * 6 * 30
    assert metrics["num_requests"] == 12
    assert metrics["num_repeats"] == 2
    ends = [[r.started_ms + r.e2e_latency_ms for r in found.requests if r.repeat == n] for n in (0, 1)]
    starts = [[r.started_ms for r in found.requests if r.repeat == n] for n in (0, 1)]
    walls_s = [(max(end) - min(start)) / 1000 for start, end in zip(starts, ends, strict=True)]
    assert metrics["output_throughput"] == pytest.approx(360 / sum(walls_s))
    assert metrics["request_throughput"] == pytest.approx(12 / sum(walls_s))
    assert found.repeat_throughputs == pytest.approx([180 / wall for wall in walls_s])
    assert 2 < metrics["output_throughput"] / metrics["mean_prompt_throughput"] < 3.01  # three streams at once
    assert list(found.prompt_throughputs) == [f"p{i}" for i in range(6)]
    assert all(rate <= 200 for rate in found.prompt_throughputs.values())
    assert set(found.class_throughputs) == {"a", "b"}
    assert {"ttft_ms", "tpot_ms", "itl_p99_ms", "e2e_latency_ms"} <= metrics.keys()
    assert 0 < metrics["client_cpu_pct"] < 100
    assert "client_lag_ms" not in metrics
    assert server.peak == 3


def test_each_pass_has_its_own_prefixes_in_every_prompt(server: Streaming, load: HostLoad) -> None:
    measured(server, load)
    texts = [asked["messages"][0]["content"] for _, asked in server.posts]
    assert sorted(texts[:6]) == [f"text {i}" for i in range(6)]
    assert sorted(text.split(") ")[1] for text in texts[6:]) == sorted(texts[:6])
    assert len(set(texts)) == 12


def test_a_server_with_caches_is_emptied_before_each_pass(server: Streaming, load: HostLoad) -> None:
    found = measured(server, load, engine=SGLang(), chat=False)
    assert found.metrics["num_output_tokens"] == 2 * 6 * 20
    assert server.num_flushed == 2


def test_warm_ups_come_in_rounds_of_what_can_be_under_way(server: Streaming, load: HostLoad) -> None:
    server.rate = 200.0
    done: list[tuple[int, int]] = []
    found = measured(server, load, on_request=lambda _, n, of: done.append((n, of)), warmup_max_requests=9)
    rounds = len(found.warmups) // 3
    assert len(found.warmups) == rounds * 3 == found.metrics["num_warmup_requests"]
    assert 3 <= rounds <= 9
    assert {(r.prompt_id, r.repeat) for r in found.warmups} == {(WARMUP_ID, WARMUP_REPEAT)}
    assert found.metrics["num_requests"] == 12
    assert done[0] == (1, 15)
    assert [n for n, _ in done] == list(range(1, rounds * 3 + 13))
    assert done[-1][1] == rounds * 3 + 12


def test_all_requests_that_will_be_sent_are_counted_from_the_first_on(server: Streaming, load: HostLoad) -> None:
    totals: list[int] = []
    measured(server, load, on_request=lambda _, n, of: totals.append(of), concurrency=5)
    assert totals == [2 * 12] * 24  # six prompts come twice in each pass to fill the places


def test_verify_steps_come_from_the_counters_over_whole_passes(server: Streaming, load: HostLoad) -> None:
    found = measured(server, load, warmup_max_requests=1)
    assert found.metrics["num_verify_steps"] == 2 * 12  # two with each answer; the warm-ups' do not count
    assert found.metrics["accept_length"] == pytest.approx(1 + 12 / 24)
    assert found.accept_definition == FROM_COUNTERS
    assert all(request.num_verify_steps is None for request in found.requests)


def test_arrivals_follow_the_rate_and_their_lag_is_recorded(server: Streaming, load: HostLoad) -> None:
    found = measured(server, load, request_rate=50.0, concurrency=100, repeats=1)
    assert found.metrics["client_lag_ms"] >= 0
    starts = [request.started_ms for request in found.requests]
    assert starts == sorted(starts)
    assert starts[-1] > 20


def test_warm_ups_of_arriving_requests_arrive_as_the_load_does(server: Streaming, load: HostLoad) -> None:
    sent: list[Arrivals] = []

    def send_all(requests: Sequence[HttpRequest], arrivals: Arrivals, timeout_s: float) -> LoadReport:
        assert len(requests) == len(arrivals.offsets_s)
        sent.append(arrivals)
        return load.send_all(requests, arrivals, timeout_s)

    arriving: dict[str, Any] = {"request_rate": 50.0, "concurrency": 100, "repeats": 1}
    found = measured(server, None, send_all=send_all, warmup_max_s=0.3, warmup_max_requests=4, **arriving)
    first, *others, _ = sent
    assert len(first.offsets_s) == 4  # of 50 a second in a quarter of 0.3 s
    assert all(other == first for other in others)
    assert len(found.warmups) == 4 * (len(sent) - 1)
    assert not any("at most 6 requests" in doubt for doubt in found.doubts)


def test_more_passes_are_made_while_the_passes_differ(server: Streaming, load: HostLoad) -> None:
    found = measured(server, load, repeats=2, max_repeats=4, precision_pct=1e-6)
    assert found.metrics["num_repeats"] == 4


def test_no_pass_begins_after_the_time_is_up(server: Streaming, load: HostLoad) -> None:
    found = measured(server, load, repeats=3, max_measure_s=1e-6)
    assert found.metrics["num_repeats"] == 1
    assert "1 instead of 3 passes: max_measure_s" in found.doubts[0]


def test_a_server_that_remembers_is_sent_each_text_once(server: Streaming, load: HostLoad) -> None:
    class Remembering(LlamaCpp):
        def remembers(self, config: ServerConfig) -> str:
            return "it keeps a pool"

    found = measured(server, load, engine=Remembering(), repeats=3, max_repeats=5)
    assert found.metrics["num_requests"] == 6
    assert "1 instead of 3 passes: it keeps a pool" in found.doubts


class Failing(LlamaCpp):
    """Every other request goes where it fails."""

    def __init__(self, path: str) -> None:
        self._path = path

    def request(self, prompt: Prompt, workload: WorkloadSpec, max_tokens: int) -> HttpRequest:
        whole = super().request(prompt, workload, max_tokens)
        return HttpRequest("POST", self._path, {}) if prompt.id in ("p1", "p3") else whole


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("/503", FailureKind.BENCHMARK_FAILED, "2 of 6 requests failed, of them first prompt 'p1': status 503"),
        (
            "/half",
            FailureKind.BENCHMARK_FAILED,
            "2 of 6 requests failed, of them first prompt 'p1': the server closed",
        ),
        ("/close", FailureKind.BENCHMARK_FAILED, "prompt 'p1', repeat 0: not a server-sent event: 'one'"),
        ("/hang", FailureKind.SERVER_HANG, "of them first prompt 'p1': no complete answer within 1 s"),
    ],
)
def test_a_request_that_fails_fails_the_launch(
    server: Streaming, load: HostLoad, path: str, kind: FailureKind, words: str
) -> None:
    with pytest.raises(TrialError) as failed:
        measured(server, load, engine=Failing(path), request_timeout_s=1)
    assert failed.value.kind is kind
    assert words in str(failed.value)


def lost_once(load: HostLoad) -> SendAll:
    """Loses the host the first time."""
    calls: list[int] = []

    def send_all(requests: Sequence[HttpRequest], arrivals: Arrivals, timeout_s: float) -> LoadReport:
        calls.append(1)
        if len(calls) == 1:
            raise TrialError(FailureKind.HOST_LOST, "the link broke")
        return load.send_all(requests, arrivals, timeout_s)

    return send_all


def test_a_pass_whose_link_broke_and_was_mended_is_sent_again(server: Streaming, load: HostLoad) -> None:
    seen: list[RequestResult] = []
    found = measured(
        server,
        None,
        send_all=lost_once(load),
        mended=lambda: True,
        on_request=lambda r, *_: seen.append(r),
        repeats=1,
    )
    assert [request.num_tries for request in found.requests] == [2] * 6
    assert len(seen) == 6


def test_a_link_that_stays_broken_fails_the_launch(server: Streaming, load: HostLoad) -> None:
    with pytest.raises(TrialError, match="the link broke") as failed:
        measured(server, None, send_all=lost_once(load))
    assert failed.value.kind is FailureKind.HOST_LOST


def test_without_a_way_to_send_many_it_is_said_at_once(server: Streaming) -> None:
    with pytest.raises(ValueError, match="'busy': nothing is given that sends many requests"):
        measured(server, None)
