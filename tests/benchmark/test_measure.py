"""The benchmark against a stand-in server: what it records, and how every kind of bad answer ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from launchers.clock import SystemClock
from sweeper.engines.base import HttpRequest
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.errors import FailureKind, TrialError
from sweeper.http import Target
from sweeper.measuring.benchmark import WARMUP_REPEAT, Bench, OnRequest, measure
from sweeper.measuring.load import WARMUP_ID
from sweeper.records import Measurement, RequestResult
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.fakes import FakeClock, load_of
from tests.server import fake_llama as fake
from tests.server.fake_llama import FakeLlama

pytestmark = pytest.mark.host
CHAT = "/v1/chat/completions"


@pytest.fixture
def server() -> Iterator[FakeLlama]:
    with fake.fake_llama() as running:
        yield running


def workload(*, prompts: int = 2, repeats: int = 2, warmup: int = 1, timeout_s: float = 10.0) -> WorkloadSpec:
    return WorkloadSpec(
        name="w",
        prompts=tuple(Prompt(id=f"p{i}", text=f"prompt {i}", prompt_class="copy") for i in range(prompts)),
        max_tokens=8,
        repeats=repeats,
        warmup_max_requests=warmup,
        temperature=0,
        seed=0,
        request_timeout_s=timeout_s,
    )


def bench(on_request: OnRequest = lambda *_: None, engine: LlamaCpp | None = None) -> Bench:
    return Bench(engine or LlamaCpp(), SystemClock(), on_request, ServerConfig())


def run(server: FakeLlama, wanted: WorkloadSpec | None = None) -> Measurement:
    return measure(Target(server.url), load_of(wanted or workload()), bench())


def failure(server: FakeLlama, wanted: WorkloadSpec | None = None) -> TrialError:
    with pytest.raises(TrialError) as caught:
        run(server, wanted)
    assert all(len(line) <= 300 for line in caught.value.evidence)
    assert len(str(caught.value)) < 1500
    return caught.value


def test_prompts_are_sent_in_order_repeat_after_repeat(server: FakeLlama) -> None:
    measured = run(server)
    assert [(r.prompt_id, r.repeat) for r in measured.requests] == [("p0", 0), ("p1", 0), ("p0", 1), ("p1", 1)]
    assert len(measured.repeat_throughputs) == 2
    assert list(measured.prompt_throughputs) == ["p0", "p1"]


def test_warm_ups_are_kept_and_not_counted(server: FakeLlama) -> None:
    measured = run(server, workload(warmup=2))
    assert [(r.prompt_id, r.repeat) for r in measured.warmups] == [(WARMUP_ID, WARMUP_REPEAT)] * 2
    assert measured.metrics["num_warmup_requests"] == 2
    assert measured.metrics["num_requests"] == 4
    assert measured.metrics["num_output_tokens"] == 8
    assert {"warmup_s", "benchmark_s"} <= measured.metrics.keys()


def test_without_warm_ups_nothing_is_recorded_of_them(server: FakeLlama) -> None:
    measured = run(server, workload(warmup=0))
    assert not {"warmup_s", "num_warmup_requests"} & measured.metrics.keys()
    assert measured.warmups == ()


def test_progress_is_told_after_each_request(server: FakeLlama) -> None:
    told: list[tuple[int, int, int]] = []

    def on_request(result: RequestResult, done: int, total: int) -> None:
        told.append((result.repeat, done, total))

    measure(
        Target(server.url),
        load_of(workload(repeats=1)),
        bench(on_request),
    )
    assert told == [(WARMUP_REPEAT, 1, 3), (0, 2, 3), (0, 3, 3)]


def test_counters_are_read_between_requests_and_shared_out(server: FakeLlama) -> None:
    server.answers["/metrics"] = fake.counting(num_drafts=2)
    measured = run(server)
    assert [r.num_verify_steps for r in measured.requests] == [2, 2, 2, 2]
    assert measured.accepted_per_position == (8, 4)  # four requests; the warm-up's share is left out
    assert server.paths[:4] == ["/metrics", CHAT, "/metrics", CHAT]


def test_drafts_of_the_answers_make_the_draft_metrics(server: FakeLlama) -> None:
    server.answers[CHAT] = fake.chat("a", "b", "c", "d", "e", drafted=4, accepted=3)
    metrics = run(server).metrics
    assert metrics["num_drafted_tokens"] == 16
    assert metrics["accept_rate"] == pytest.approx(0.75)
    assert metrics["accept_length"] == pytest.approx(1 + 3 / 2)
    assert metrics["tokens_per_step"] == pytest.approx(5 / 2)


@pytest.mark.parametrize(
    "answer", [fake.status(404), fake.raw(b"\xff<html>"), fake.drop, fake.endless(b"x" * 100_000)]
)
def test_without_a_metrics_page_what_it_would_have_told_is_absent(server: FakeLlama, answer: fake.Answer) -> None:
    server.answers["/metrics"] = answer
    measured = run(server, workload(prompts=1, repeats=1, warmup=0))
    assert measured.requests[0].num_verify_steps is None
    assert measured.accepted_per_position == ()
    assert "accept_length" not in measured.metrics
    assert measured.metrics["output_throughput"] > 0


def test_equal_outputs_have_equal_hashes(server: FakeLlama) -> None:
    server.answers[CHAT] = fake.in_turn(fake.chat("a", "b"), fake.chat("ab"), fake.chat("c"))
    hashes = [r.output_sha256 for r in run(server, workload(prompts=3, repeats=1, warmup=0)).requests]
    assert hashes[0] == hashes[1] != hashes[2]


def test_lines_that_arrive_later_have_later_times(server: FakeLlama) -> None:
    first, rest = fake.sse("a", "b").split(b"\n\n", 1)

    def slow(handler: fake.Handler) -> None:
        handler.begin()
        handler.write(first + b"\n\n")
        handler.server.over.wait(0.05)
        handler.write(rest)

    server.answers[CHAT] = slow
    (request,) = run(server, workload(prompts=1, repeats=1, warmup=0)).requests
    assert request.ttft_ms is not None
    assert request.ttft_ms >= 50  # the first chunk holds no text yet
    assert request.e2e_latency_ms >= request.ttft_ms


def test_http_chunks_that_split_lines_are_put_together(server: FakeLlama) -> None:
    body = fake.sse("a", "b")
    server.answers[CHAT] = fake.chunked(*(body[i : i + 7] for i in range(0, len(body), 7)))
    assert run(server, workload(warmup=0)).requests[0].num_output_tokens == 2


@pytest.mark.timeout(60)
@pytest.mark.parametrize("answer", [fake.hang, fake.trickle, fake.trickle_headers])
def test_request_that_never_ends_is_a_hang_although_every_read_succeeds(
    server: FakeLlama, answer: fake.Answer
) -> None:
    server.answers[CHAT] = answer
    error = failure(server, workload(timeout_s=0.3))
    assert error.kind is FailureKind.SERVER_HANG
    assert "no complete answer within 0.3 s" in str(error)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (fake.status(500, "slot failed"), "status 500: 'slot failed'"),
        (fake.status(302), "status 302"),
        (fake.drop, "RemoteDisconnected"),
        (fake.cut_off(fake.sse("a")[:200]), "IncompleteRead"),
        (fake.raw(fake.sse("a", "b")[:300]), "ended early"),
        (fake.raw(fake.event(error={"message": "context is full"})), "context is full"),
        (fake.raw(b"<html>" + b"x" * 10_000), "not a server-sent event"),
        (fake.raw(b""), "ended early"),
        (fake.raw(fake.sse()), "the answer is empty"),
        (fake.raw(fake.sse("", num_tokens=1)), "the answer is empty"),
        (fake.endless(b"x" * 100_000), "a line of the answer is longer than"),
        (fake.endless((b"x" * 100_000 + b"\n") * 10), "the answer is longer than"),
    ],
)
def test_bad_answer_is_a_failed_benchmark_with_its_evidence(
    server: FakeLlama, answer: fake.Answer, said: str
) -> None:
    server.answers[CHAT] = fake.in_turn(fake.chat("fine"), answer)
    error = failure(server)
    assert error.kind is FailureKind.BENCHMARK_FAILED
    assert said in str(error)
    assert "prompt 'p0', repeat 0" in str(error)


def test_redirect_is_not_followed(server: FakeLlama) -> None:
    server.answers.update({CHAT: fake.redirect("/elsewhere"), "/elsewhere": fake.chat("a")})
    assert "status 307" in str(failure(server))
    assert "/elsewhere" not in server.paths


def test_failed_warm_up_says_that_it_was_one(server: FakeLlama) -> None:
    server.answers[CHAT] = fake.status(503)
    assert f"prompt '{WARMUP_ID}', warm-up" in str(failure(server))


def test_server_that_is_not_there_is_a_failed_benchmark(server: FakeLlama) -> None:
    url = server.url
    server.shutdown()
    server.server_close()
    with pytest.raises(TrialError, match="Connection refused") as caught:
        measure(Target(url), load_of(workload()), bench())
    assert caught.value.kind is FailureKind.BENCHMARK_FAILED


def test_proxies_of_the_environment_are_ignored(server: FakeLlama, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert run(server).metrics["num_requests"] == 4


def test_request_asks_for_what_the_workload_says(server: FakeLlama) -> None:
    run(server, workload(prompts=1, repeats=1, warmup=0))
    (body,) = server.posts
    assert (body["max_tokens"], body["stream"], body["cache_prompt"]) == (8, True, False)


# The way to the server breaks, and the server goes silent.


def test_a_request_that_broke_with_the_way_to_the_host_is_sent_again(server: FakeLlama) -> None:
    server.answers[CHAT] = fake.in_turn(fake.chat("a"), fake.drop, fake.chat("a"))
    asked: list[str] = []

    def mended() -> bool:
        asked.append("mended")
        return True

    target = Target(server.url, mended=mended)
    measured = measure(target, load_of(workload(prompts=1, repeats=2, warmup=0)), bench())
    assert [request.num_tries for request in measured.requests] == [1, 2]
    assert asked == ["mended"]


def test_drafts_of_a_request_that_was_sent_again_are_not_counted_and_that_is_said(server: FakeLlama) -> None:
    server.answers[CHAT] = fake.in_turn(fake.drop, fake.chat("a"))
    target = Target(server.url, mended=lambda: True)
    measured = measure(target, load_of(workload(prompts=1, repeats=1, warmup=0)), bench())
    assert measured.requests[0].num_verify_steps is None  # the abandoned try is in the counters, too
    assert "accept_length" not in measured.metrics
    assert any("1 of 1 requests were sent again" in doubt for doubt in measured.doubts)


def test_a_request_that_broke_with_the_server_is_not_sent_again(server: FakeLlama) -> None:
    server.answers[CHAT] = fake.drop
    assert failure(server).kind is FailureKind.BENCHMARK_FAILED
    assert server.paths.count(CHAT) == 1


def test_a_way_that_breaks_each_time_is_given_up(server: FakeLlama) -> None:
    server.answers[CHAT] = fake.drop
    target = Target(server.url, mended=lambda: True)
    with pytest.raises(TrialError):
        measure(target, load_of(workload(warmup=0)), bench())
    assert server.paths.count(CHAT) == 3


def test_a_silent_server_is_asked_after_and_its_trouble_ends_the_wait(server: FakeLlama) -> None:
    server.answers[CHAT] = fake.hang
    target = Target(server.url, trouble=lambda: "the scheduler is dead")
    with pytest.raises(TrialError, match="the scheduler is dead") as caught:
        measure(
            target,
            load_of(workload(timeout_s=60)),
            bench(),
        )
    assert caught.value.kind is FailureKind.BENCHMARK_FAILED


def test_a_server_that_speaks_is_never_asked_after(server: FakeLlama) -> None:
    asked: list[str] = []

    def trouble() -> str:
        asked.append("?")
        return "gone"

    target = Target(server.url, trouble=trouble)
    measure(target, load_of(workload()), bench())
    assert asked == []


class Flushing(LlamaCpp):
    """The same engine, with caches that want emptying."""

    def flush(self) -> HttpRequest | None:
        return HttpRequest("POST", "/flush", {})


def test_caches_are_emptied_before_warm_ups_and_passes_and_a_busy_server_is_asked_again(server: FakeLlama) -> None:
    server.answers["/flush"] = fake.in_turn(fake.status(400), fake.status(200))
    wanted = workload(prompts=2, repeats=2, warmup=1)
    measure(Target(server.url), load_of(wanted), bench(engine=Flushing()))
    spoken = [path for path in server.paths if path != "/metrics"]
    assert spoken == ["/flush", "/flush", CHAT, "/flush", CHAT, CHAT, "/flush", CHAT, CHAT]


class Telling(Flushing):
    """One whose server says in its answer, not by its status, whether it did."""

    def flushed(self, answer: bytes) -> bool:
        return b"done" in answer


def test_a_server_that_says_in_its_answer_that_it_could_not_empty_its_caches_is_asked_again(
    server: FakeLlama,
) -> None:
    server.answers["/flush"] = fake.in_turn(fake.status(200, "busy"), fake.status(200, "done"))
    measure(Target(server.url), load_of(workload(warmup=0)), bench(engine=Telling()))
    assert [path for path in server.paths if path != "/metrics"][:3] == ["/flush", "/flush", CHAT]


def test_caches_that_cannot_be_emptied_end_the_launch(server: FakeLlama) -> None:
    server.answers["/flush"] = fake.status(400, "busy for ever")
    with pytest.raises(TrialError, match="caches could not be emptied") as caught:
        measure(
            Target(server.url),
            load_of(workload()),
            Bench(Flushing(), FakeClock(), lambda *_: None, ServerConfig()),
        )
    assert caught.value.kind is FailureKind.BENCHMARK_FAILED
