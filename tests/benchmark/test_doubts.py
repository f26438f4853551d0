"""What makes a measurement doubtful, and what does not."""

from __future__ import annotations

import random

import pytest

from sweeper.measuring.doubts import passes_doubt, server_doubt
from sweeper.measuring.results import Answered
from sweeper.measuring.summary import Observed, measurement_of
from sweeper.records import RequestResult
from sweeper.text_marks import divergence
from tests.fakes import EPOCH

PROMPTS = "abcde"


def request(
    e2e_ms: float,
    *,
    prompt: str = "a",
    repeat: int = 0,
    server_ms: float | None = None,
    ttft_ms: float | None = None,
    accepted: int | None = None,
) -> RequestResult:
    return RequestResult(
        prompt_id=prompt,
        prompt_class="default",
        repeat=repeat,
        sent_at=EPOCH,
        e2e_latency_ms=e2e_ms,
        ttft_ms=ttft_ms,
        server_e2e_ms=server_ms,
        num_output_tokens=100,
        num_accepted_tokens=accepted,
    )


# Client and server.


@pytest.mark.parametrize(
    ("client_ms", "server_ms"),
    [(10_000, 9_950), (9_950, 10_000), (102.5, 100), (10_000, None)],  # 2.5 ms are the way, not a fault
)
def test_times_that_agree_within_a_percent_and_three_milliseconds_raise_no_doubt(
    client_ms: float, server_ms: float | None
) -> None:
    assert server_doubt([request(client_ms, server_ms=server_ms)] * 3) == ""


def test_a_client_that_waits_longer_than_the_server_works_is_doubtful() -> None:
    assert server_doubt([request(1032, server_ms=1000)] * 3) == (
        "the client's time is 3.2 % above the server's own (1,032 against 1,000 ms a request): the way to the "
        "server, a queue in it or the client is part of what was measured"
    )


def test_a_server_that_claims_more_time_than_passed_is_doubtful() -> None:
    assert "2.0 % below the server's own" in server_doubt([request(9800, server_ms=10_000)])


# Pass by pass.


def passes(*speeds: float, noise: float = 0.0) -> list[RequestResult]:
    """One pass of five prompts per speed (1: a second a request); `noise` as a standard deviation."""
    draw = random.Random(3)
    return [
        request(1000 / speed * draw.gauss(1, noise), prompt=prompt, repeat=repeat, ttft_ms=100 / speed)
        for repeat, speed in enumerate(speeds)
        for prompt in PROMPTS
    ]


def test_passes_that_differ_by_noise_raise_no_doubt() -> None:
    assert passes_doubt(passes(1.0)) == ""
    assert passes_doubt(passes(1.0, 1.0, 1.0, noise=0.05)) == ""
    assert passes_doubt(passes(1.0, 1.02, 1.02)) == ""  # nothing that anybody could decide on
    assert passes_doubt(passes(1.2, 1.0, 1.0)) == ""


def test_a_first_pass_that_is_slower_was_a_server_still_warming_up() -> None:
    assert passes_doubt(passes(1.0, 1.2, 1.2, noise=0.02)).endswith("a server still warming up, or a busy host")


def test_a_first_token_that_alone_comes_sooner_is_a_cache() -> None:
    first = [request(1000, prompt=p, ttft_ms=500) for p in PROMPTS]
    later = [request(600, prompt=p, repeat=1, ttft_ms=100) for p in PROMPTS]
    assert passes_doubt([*first, *later]).startswith(
        "later passes are faster by 67 %, as they reach the first token"
    )


def test_drafts_that_help_one_prompt_alone_are_a_cache_too() -> None:
    first = [request(1000, prompt=p, accepted=0) for p in PROMPTS]
    later = [request(800, prompt=p, repeat=1, accepted=50 if p == "a" else 0) for p in PROMPTS]
    assert passes_doubt([*first, *later]).startswith("later passes are faster by 25 %, as more drafts are kept")


def test_a_host_that_slows_whole_passes_now_and_then_is_not_mistaken_for_a_cold_server() -> None:
    assert passes_doubt(passes(1.0, 1.5, 1.15)) == ""
    assert passes_doubt(passes(1.0, 1.4, 1.45)) != ""
    assert passes_doubt(passes(1.0, 1.1, 1.2, 1.3)).endswith("a server still warming up, or a busy host")


def test_more_drafts_accepted_are_a_cache_even_when_nothing_is_faster() -> None:
    first = [request(1000, prompt=p, accepted=20) for p in PROMPTS]
    later = [request(1000, prompt=p, repeat=1, accepted=50) for p in PROMPTS]
    assert passes_doubt([*first, *later]).startswith("later passes keep 60 % more tokens per decode step")


def test_one_prompt_must_gain_more_than_five_do_before_it_is_believed() -> None:
    assert passes_doubt([request(1000), request(900, repeat=1)]) == ""
    assert passes_doubt([request(1000), request(600, repeat=1)]) != ""
    assert passes_doubt(passes(1.0, 1.11)) != ""


def test_a_false_alarm_is_rare() -> None:
    draw = random.Random(11)
    alarms = 0
    for _ in range(300):
        requests = [
            request(1000 * draw.gauss(1, 0.05), prompt=prompt, repeat=repeat)
            for repeat in range(2)
            for prompt in PROMPTS
        ]
        alarms += bool(passes_doubt(requests))
    assert alarms <= 6


def observed(requests: list[RequestResult], *, cross_checked: bool = True, greedy: bool = False) -> Observed:
    answered = [Answered(r, ()) for r in requests]
    return Observed(answered, 1.0, len(PROMPTS), cross_checked=cross_checked, greedy=greedy)


def test_every_doubt_is_listed_and_nothing_else() -> None:
    assert measurement_of(observed([request(1000, server_ms=1000)])).doubts == ()
    requests = [r.model_copy(update={"server_e2e_ms": 500.0}) for r in passes(1.0, 1.5)]
    assert len(measurement_of(observed(requests)).doubts) == 2
    assert len(measurement_of(observed(requests, cross_checked=False)).doubts) == 1


def test_only_texts_that_are_determined_are_kept_for_comparison() -> None:
    requests = [r.model_copy(update={"output_text": f"text {r.prompt_id}"}) for r in passes(1.0, 1.0)]
    kept = measurement_of(observed(requests, greedy=True)).outputs
    assert list(kept) == [f"{r.prompt_id}#{r.repeat}" for r in requests]
    assert divergence(kept[f"{PROMPTS[0]}#0"], kept[f"{PROMPTS[0]}#1"]) is None
    assert divergence(kept[f"{PROMPTS[0]}#0"], kept[f"{PROMPTS[1]}#0"]) is not None
    assert measurement_of(observed(requests)).outputs == {}
