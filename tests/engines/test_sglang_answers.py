"""SGLang's answers: what real servers said is understood, anything else is a ValueError with bounded text."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import Generation
from sweeper.engines.sglang.acceptance import CORRECT_DRAFTS, FALLBACK, acceptance
from sweeper.engines.sglang.answers import (
    flush_request,
    parse_generate,
    request_body,
)
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.engines import sglang_saved
from tests.engines.saved import streamed

PROMPT = Prompt(id="p", text="Once", token_ids=(1, 2, 3))
DONE = b"data: [DONE]\n\n"
LENGTH = {"type": "length", "length": 3}


def workload(*, chat: bool, ignore_eos: bool = False) -> WorkloadSpec:
    return WorkloadSpec(
        name="w",
        chat=chat,
        ignore_eos=ignore_eos,
        prompts=(PROMPT,),
        max_tokens=64,
        repeats=1,
        warmup_max_requests=0,
        temperature=0.0,
        seed=7,
        request_timeout_s=10.0,
    )


def chunk(text: str, ids: list[int] | None = None, /, **meta: object) -> bytes:
    body: dict[str, Any] = {"text": text, "meta_info": {"finish_reason": None, **meta}}
    return b"data: " + json.dumps(body | ({} if ids is None else {"output_ids": ids})).encode() + b"\n\n"


def last(text: str = "abc", ids: list[int] | None = None, /, **meta: object) -> bytes:
    return chunk(text, ids, **{"finish_reason": LENGTH, "completion_tokens": 3, "prompt_tokens": 5, **meta}) + DONE


def parse(body: bytes) -> Generation:
    return parse_generate(streamed(body))


# Requests.


def test_a_chat_prompt_is_sent_as_the_tokens_of_its_template() -> None:
    body = request_body(PROMPT, workload(chat=True), 64)
    assert body["input_ids"] == [1, 2, 3]
    assert "text" not in body
    assert body["stream"] is True


def test_a_plain_prompt_is_sent_as_text() -> None:
    body = request_body(PROMPT, workload(chat=False), 9)
    assert (body["text"], body.get("input_ids")) == ("Once", None)
    assert body["sampling_params"] == {
        "temperature": 0.0,
        "max_new_tokens": 9,
        "ignore_eos": False,
        "sampling_seed": 7,
    }


def test_a_fixed_amount_of_work_goes_past_the_end_of_the_text() -> None:
    body = request_body(PROMPT, workload(chat=True, ignore_eos=True), 64)
    assert body["sampling_params"]["ignore_eos"] is True


def test_caches_are_emptied_by_a_post() -> None:
    assert (flush_request().method, flush_request().path) == ("POST", "/flush_cache")


# Answers of a real server.


def test_saved_answer_without_speculation_says_nothing_of_drafts() -> None:
    answer = parse(sglang_saved.stream("baseline"))
    assert (answer.num_output_tokens, answer.num_prompt_tokens, answer.finish_reason) == (64, 235, "length")
    assert (answer.num_verify_steps, answer.num_accepted_tokens, answer.num_drafted_tokens) == (None, None, None)
    assert (answer.accept_histogram, answer.accept_source) == ((), "")


def test_saved_answer_with_eagle3_counts_its_drafts() -> None:
    answer = parse(sglang_saved.stream("e3_after"))
    assert (answer.num_verify_steps, answer.num_accepted_tokens, answer.num_drafted_tokens) == (26, 39, 78)
    assert answer.accept_histogram == (8, 6, 3, 9)
    assert answer.accept_source == CORRECT_DRAFTS
    assert answer.text.startswith("gnitude) to return a pair of centroids.")


def test_saved_answer_under_the_wrong_flag_accepted_nothing() -> None:
    answer = parse(sglang_saved.stream("wrong_flag"))
    assert answer.num_verify_steps == 63
    assert answer.num_accepted_tokens == 0
    assert answer.accept_histogram[0] == 63


def test_the_first_token_is_the_first_chunk() -> None:
    assert parse_generate(streamed(sglang_saved.stream("baseline"), ms_per_line=10)).ttft_ms == 10


# Text, whole or in pieces.


def test_cumulative_text_is_the_last_chunk() -> None:
    assert parse(chunk("a", [1]) + chunk("ab", [1, 2]) + last("abc", [1, 2, 3])).text == "abc"


def test_incremental_text_is_all_chunks_together() -> None:
    body = chunk("a", [1], completion_tokens=1) + chunk("a", [2], completion_tokens=2) + last("b", [3])
    assert parse(body).text == "aab"


@pytest.mark.parametrize(("texts", "whole"), [(("a", "ab", "abc"), "abc"), (("a", "b", "c"), "abc")])
def test_without_token_ids_the_text_itself_tells(texts: tuple[str, str, str], whole: str) -> None:
    assert parse(chunk(texts[0]) + chunk(texts[1]) + last(texts[2])).text == whole


def test_an_empty_first_chunk_is_not_the_first_token() -> None:
    assert parse_generate(streamed(chunk("", []) + chunk("a", [1]) + last(), ms_per_line=10)).ttft_ms == 30


def test_each_chunk_that_brings_something_new_has_its_time() -> None:
    body = chunk("", []) + chunk("a", [1]) + chunk("a", [1]) + chunk("a", [1, 2]) + last("abc", [1, 2, 3])
    answer = parse_generate(streamed(body, ms_per_line=10))  # two lines each; token 2 shows no text yet
    assert (answer.ttft_ms, list(answer.chunk_ms)) == (30, [30, 70, 90])


def test_pieces_that_are_alike_are_all_new() -> None:
    body = chunk("a", [1], completion_tokens=1) + chunk("a", [1], completion_tokens=2) + last("a", [1])
    assert parse_generate(streamed(body, ms_per_line=10)).chunk_ms == (10, 30, 50)


@pytest.mark.parametrize("name", ["baseline", "e3_after"])
def test_a_real_stream_has_a_time_for_each_of_its_chunks(name: str) -> None:
    answer = parse(sglang_saved.stream(name))
    assert 10 < len(answer.chunk_ms) <= 64
    assert list(answer.chunk_ms) == sorted(set(answer.chunk_ms))


# The server's own times.


def test_the_servers_own_time_is_in_milliseconds() -> None:
    assert parse(sglang_saved.stream("e3_after")).server_e2e_ms == pytest.approx(221.5266, abs=1e-3)


def test_what_came_after_the_first_token_is_known_where_the_server_says_when_that_was() -> None:
    answer = parse(last(e2e_latency=1.25, first_token_latency=0.25))
    assert (answer.server_e2e_ms, answer.server_decode_ms) == (1250, 1000)
    assert parse(sglang_saved.stream("e3_after")).server_decode_ms is None  # 0.5.15 does not


@pytest.mark.parametrize(
    "value", [None, 0, -1.0, True, "1.5", float("nan"), float("inf"), 1e300, 10**400, [1.0], {"s": 1}]
)
def test_a_time_that_is_none_is_left_out(value: object) -> None:
    answer = parse(last(e2e_latency=value, first_token_latency=0.1))
    assert (answer.server_e2e_ms, answer.server_decode_ms) == (None, None)


@pytest.mark.parametrize("first", [1.25, 2.0, float("nan"), "x"])
def test_a_first_token_after_the_end_tells_nothing(first: object) -> None:
    assert parse(last(e2e_latency=1.25, first_token_latency=first)).server_decode_ms is None


# Which figures the accept length is drawn from.


@pytest.mark.parametrize("name", ["spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num"])
def test_every_versions_name_for_correct_drafts_is_known(name: str) -> None:
    answer = parse(last(spec_verify_ct=2, **{name: 1}))
    assert (answer.num_accepted_tokens, answer.accept_source) == (1, CORRECT_DRAFTS)


def test_without_correct_drafts_the_tokens_tell_and_the_first_came_from_prefill() -> None:
    answer = parse(last(completion_tokens=64, spec_verify_ct=21))
    assert (answer.num_verify_steps, answer.num_accepted_tokens) == (21, 42)  # 1 + 42 / 21 = 63 / 21
    assert answer.accept_source == FALLBACK
    assert acceptance({"spec_verify_ct": 21}).source == FALLBACK


def test_the_fallback_is_never_negative() -> None:
    assert parse(last(completion_tokens=3, spec_verify_ct=9)).num_accepted_tokens == 0


@pytest.mark.parametrize("histogram", [[1, 1, 1], [9], [2, -1, 1], ["a"], {"0": 2}, [0] * 5000, [True, True]])
def test_a_histogram_that_contradicts_the_counts_is_left_out(histogram: object) -> None:
    body = last(spec_verify_ct=2, spec_num_correct_drafts=1, spec_correct_drafts_histogram=histogram)
    assert parse(body).accept_histogram == ()


def test_the_older_name_of_the_histogram_is_known() -> None:
    body = last(spec_verify_ct=2, spec_accept_token_num=1, spec_accept_histogram=[1, 1])
    assert parse(body).accept_histogram == (1, 1)


def test_more_accepted_than_proposed_leaves_the_proposed_out() -> None:
    answer = parse(last(spec_verify_ct=2, spec_num_correct_drafts=9, spec_num_proposed_drafts=6))
    assert (answer.num_accepted_tokens, answer.num_drafted_tokens) == (9, None)


# What is not an answer.


@pytest.mark.parametrize("num_lines", range(0, 54, 7))
def test_stream_of_a_killed_server_is_not_an_answer(num_lines: int) -> None:
    lines = sglang_saved.stream("e3_after").split(b"\n")[:num_lines]
    with pytest.raises(ValueError, match="ended early"):
        parse(b"\n".join(lines))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'data: {"error": {"message": "context is full"}}\n\n' + DONE, "context is full"),
        (chunk("a", [1]) + b'data: {"error": {"message": "context is full"}}\n\n' + DONE, "context is full"),
        (b'{"error": "no such route"}\n', "not a server-sent event"),
        (last(finish_reason={"type": "abort", "message": "out of KV cache"}), "out of KV cache"),
        (chunk("a", [1], finish_reason=LENGTH, completion_tokens=1), "ended early"),
        (last(completion_tokens=None), "how many tokens"),
        (last(completion_tokens=-1), "not a count"),
        (last(completion_tokens=True), "not a count"),
        (last(completion_tokens=10**12), "not a count"),
        (last(prompt_tokens="5"), "not a count"),
        (last(spec_verify_ct=1.5), "not a count"),
        (last(spec_verify_ct=2, spec_num_correct_drafts=-3), "not a count"),
        (b'data: {"text": "a"}\n\n', "without meta_info"),
        (b"data: [1]\n", "not a JSON object"),
        (b"data: {broken\n", "not JSON"),
        (b"data: " + b"[" * 100_000 + b"\n", "not JSON"),
        (b"\xff\xfe\n", "utf-8"),
        (b"", "ended early"),
    ],
)
def test_nonsense_is_a_value_error_that_says_what(body: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        parse(body)
    assert len(str(caught.value)) < 500


@given(at=st.integers(0, 16_000), junk=st.binary(max_size=40), cut=st.integers(0, 40))
def test_damaged_answer_is_understood_or_a_value_error(at: int, junk: bytes, cut: int) -> None:
    body = sglang_saved.stream("e3_after")
    with contextlib.suppress(ValueError):
        answer = parse(body[:at] + junk + body[at + cut :])
        assert answer.num_output_tokens >= 0
        assert sum(answer.accept_histogram) in (0, answer.num_verify_steps)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "spec_verify_ct",
        "spec_num_correct_drafts",
        "spec_correct_drafts_histogram",
        "finish_reason",
        "prompt_tokens",
        "num_retractions",
        "e2e_latency",
        "first_token_latency",
    ]
)


@given(meta=st.dictionaries(NAMES, JSON, max_size=5), text=JSON, ids=JSON)
def test_hostile_figures_are_understood_or_a_value_error(
    meta: dict[str, object], text: object, ids: object
) -> None:
    body = {
        "text": text,
        "output_ids": ids,
        "meta_info": {"finish_reason": LENGTH, "completion_tokens": 1, **meta},
    }
    with contextlib.suppress(ValueError):
        parse(b"data: " + json.dumps(body).encode() + b"\n\n" + DONE)
