"""llama.cpp's answers: what real servers said is understood, anything else is a ValueError with bounded text."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import Counters, Identity
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.errors import FailureKind
from tests.engines import saved

ENGINE = LlamaCpp()


def event(**chunk: object) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def piece(text: str | None, finish: str | None = None) -> bytes:
    return event(choices=[{"delta": {"content": text}, "finish_reason": finish}])


DONE = b"data: [DONE]\n\n"
USAGE = event(choices=[], usage={"completion_tokens": 2, "prompt_tokens": 5})


# Streams.


def test_saved_answer_without_speculation_drafted_nothing() -> None:
    answer = ENGINE.parse(saved.chat("chat_plain.sse"))
    assert answer.text.startswith("The cat sat on the mat by the door.")
    assert (answer.num_output_tokens, answer.finish_reason) == (24, "length")
    assert (answer.num_drafted_tokens, answer.num_accepted_tokens) == (0, 0)
    assert answer.server_decode_ms is not None
    assert answer.server_decode_ms > 0


@pytest.mark.parametrize(
    ("name", "drafted", "accepted"), [("chat_ngram_simple.sse", 19, 14), ("chat_draft_simple.sse", 17, 17)]
)
def test_saved_answer_with_speculation_counts_its_drafts(name: str, drafted: int, accepted: int) -> None:
    answer = ENGINE.parse(saved.chat(name))
    assert (answer.num_drafted_tokens, answer.num_accepted_tokens) == (drafted, accepted)
    assert answer.text == ENGINE.parse(saved.chat("chat_plain.sse")).text


def test_first_token_is_the_first_chunk_with_text_not_the_first_chunk() -> None:
    body = piece(None) + piece("") + piece("a") + piece("b", "stop") + USAGE + DONE
    assert ENGINE.parse(saved.streamed(body, ms_per_line=10)).ttft_ms == 50  # two lines an event


def test_each_chunk_with_text_has_its_time() -> None:
    body = piece(None) + piece("") + piece("a") + piece("b") + piece("c", "stop") + USAGE + DONE
    assert ENGINE.parse(saved.streamed(body, ms_per_line=10)).chunk_ms == (50, 70, 90)


def test_the_servers_own_time_is_prompt_and_decoding_together() -> None:
    answer = ENGINE.parse(saved.chat("chat_ngram_simple.sse"))
    timings = event(choices=[], timings={"prompt_ms": 20.5, "predicted_ms": 100})
    exact = ENGINE.parse(saved.streamed(piece("ab", "stop") + USAGE + timings + DONE))
    assert (exact.server_e2e_ms, exact.server_decode_ms) == (120.5, 100)
    assert answer.server_e2e_ms is not None
    assert answer.server_e2e_ms > (answer.server_decode_ms or 0) > 0


def test_half_of_the_servers_time_is_none() -> None:
    timings = event(choices=[], timings={"predicted_ms": 100})
    assert ENGINE.parse(saved.streamed(piece("ab", "stop") + USAGE + timings + DONE)).server_e2e_ms is None


def test_reasoning_counts_as_text() -> None:
    thinking = event(choices=[{"delta": {"reasoning_content": "hm"}, "finish_reason": None}])
    assert ENGINE.parse(saved.streamed(thinking + piece("x", "stop") + USAGE + DONE)).text == "hmx"


def test_pings_and_blank_lines_are_skipped() -> None:
    body = b": ping\n\n" + piece("a", "stop") + b"\r\n" + USAGE + DONE
    assert ENGINE.parse(saved.streamed(body)).text == "a"


def test_drafts_are_unknown_when_the_server_gives_no_timings() -> None:
    answer = ENGINE.parse(saved.streamed(piece("a", "stop") + USAGE + DONE))
    assert answer.num_drafted_tokens is None
    assert answer.num_accepted_tokens is None


@pytest.mark.parametrize("num_lines", range(0, 50, 7))
def test_stream_cut_anywhere_is_not_an_answer(num_lines: int) -> None:
    lines = (saved.LLAMACPP / "chat_plain.sse").read_bytes().split(b"\n")[:num_lines]
    with pytest.raises(ValueError, match="ended early"):
        ENGINE.parse(saved.streamed(b"\n".join(lines)))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (event(error={"code": 500, "message": "context is full"}), "context is full"),
        (b'error: {"code": 500}\n', "not a server-sent event"),
        (b"data: {broken\n", "not JSON"),
        (b"data: [1]\n", "not a JSON object"),
        (b"data: " + b"[" * 100_000 + b"\n", "not JSON"),
        (b"data: {}\n", "without choices"),
        (b'data: {"choices": [7]}\n', "without delta"),
        (b"\xff\xfe\n", "utf-8"),
        (piece("a", "stop") + DONE, "how many tokens"),
        (piece("a", "stop") + event(choices=[], usage={"completion_tokens": "2"}) + DONE, "not a count"),
        (piece("a", "stop") + event(choices=[], usage={"completion_tokens": True}) + DONE, "not a count"),
        (piece("a", "stop") + USAGE + event(choices=[], timings={"predicted_ms": -1}) + DONE, "not a duration"),
        (piece("a", "stop") + USAGE + event(choices=[], timings={"prompt_ms": math.nan}) + DONE, "not a duration"),
        (
            piece("a", "stop") + USAGE + event(choices=[], timings={"draft_n": 1, "draft_n_accepted": 2}) + DONE,
            "2 accepted of 1 drafted",
        ),
    ],
)
def test_nonsense_is_a_value_error_that_says_what(body: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        ENGINE.parse(saved.streamed(body))
    assert len(str(caught.value)) < 500


def test_hostile_finish_reason_can_be_stored() -> None:
    body = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "\\ud800"}]}\n' + USAGE + DONE
    ENGINE.parse(saved.streamed(body)).finish_reason.encode()


@given(at=st.integers(0, 6700), junk=st.binary(max_size=40), cut=st.integers(0, 40))
def test_damaged_answer_is_understood_or_a_value_error(at: int, junk: bytes, cut: int) -> None:
    body = (saved.LLAMACPP / "chat_ngram_simple.sse").read_bytes()
    with contextlib.suppress(ValueError):
        answer = ENGINE.parse(saved.streamed(body[:at] + junk + body[at + cut :]))
        assert answer.num_output_tokens >= 0
        assert answer.num_drafted_tokens is None or answer.num_drafted_tokens >= (answer.num_accepted_tokens or 0)


# Pages.


def test_saved_counters() -> None:
    assert ENGINE.counters(saved.text("metrics_ngram_simple.txt")) == Counters(6, 19, 14, (5, 3, 3, 3))
    assert ENGINE.counters(saved.text("metrics_plain.txt")) == Counters(0, 0, 0, ())


@given(at=st.integers(0, 3000), junk=st.text(max_size=40), cut=st.integers(0, 40))
def test_damaged_metrics_page_never_raises(at: int, junk: str, cut: int) -> None:
    page = saved.text("metrics_ngram_simple.txt")
    ENGINE.counters(page[:at] + junk + page[at + cut :])


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-3"])
def test_impossible_counter_is_not_one(value: str) -> None:
    assert ENGINE.counters(f"llamacpp:spec_decode_num_drafts_total {value}\n") == Counters()


def test_absurd_draft_position_costs_no_memory() -> None:
    page = 'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="999999999"} 1\n'
    assert ENGINE.counters(page).accepted_per_position == ()


def test_saved_identity_and_effective_configuration() -> None:
    info = json.loads(saved.text("props.json"))
    assert ENGINE.identity(info) == Identity("nonce-1", "/models/target.gguf")
    assert ENGINE.effective(info) == {"parallel": 1, "ctx_size": 1024}


def test_context_that_several_slots_share_is_not_reported() -> None:
    info = json.loads(saved.text("props.json")) | {"total_slots": 2}
    assert ENGINE.effective(info) == {"parallel": 2}


def test_version_of_the_wheel_and_of_a_native_server() -> None:
    assert ENGINE.parse_version(saved.text("version.txt")) == "xllamacpp 2026.10.11549 (64fbe0fe7c40)"
    native = "ggml_cuda_init: found 1 CUDA devices\nversion: 11434 (abcdef)\nbuilt with cc 13.3.0 for x86_64\n"
    assert ENGINE.parse_version(native) == "11434 (abcdef)"
    assert ENGINE.parse_build(native) == {"commit": "abcdef", "compiler": "cc 13.3.0 for x86_64"}
    assert ENGINE.parse_build(saved.text("version.txt")) == {"commit": "64fbe0fe7c40"}
    assert ENGINE.parse_build("usage: llama-server\nversion: unknown\n") == {}


# Log.


@pytest.mark.parametrize(
    ("name", "kind", "evidence"),
    [
        ("removed_flag", FailureKind.UNSUPPORTED, "--draft-max"),
        ("unknown_type", FailureKind.UNSUPPORTED, "nonsense"),
        ("draft_simple_without_model", FailureKind.UNSUPPORTED, "requires a draft context"),
        ("draft_eagle3_with_plain_draft", FailureKind.UNSUPPORTED, "not eagle3"),
        ("draft_mtp_without_heads", FailureKind.UNSUPPORTED, "doesn't contain MTP layers"),
        ("draft_dflash_with_plain_draft", FailureKind.UNSUPPORTED, "no target_layer_ids"),
        ("broken_draft", FailureKind.UNSUPPORTED, "failed to load draft model"),
        ("broken_model", FailureKind.SERVER_CRASH, "failed to load model"),
        ("draft_n_max_0", FailureKind.SERVER_CRASH, "GGML_ASSERT(n_outputs_max"),
        ("port_taken", FailureKind.HOST_DIRTY, "couldn't bind"),
    ],
)
def test_saved_failure_is_diagnosed(name: str, kind: FailureKind, evidence: str) -> None:
    found = ENGINE.diagnose(saved.text(f"log_{name}.txt"), 1)
    assert found is not None
    assert found.kind is kind
    assert any(evidence in line for line in found.evidence)


@pytest.mark.parametrize("name", ["plain", "ngram_simple", "draft_simple"])
@pytest.mark.parametrize("code", [None, 0, 137, 143])
def test_log_of_a_healthy_run_shows_no_failure(name: str, code: int | None) -> None:
    assert ENGINE.diagnose(saved.text(f"log_{name}.txt"), code) is None


@pytest.mark.parametrize(
    "line",
    [
        "buffer_type_alloc_buffer: allocating 9000.00 MiB on device 0: cudaMalloc failed: out of memory",
        "alloc_tensor_range: failed to allocate CUDA0 buffer of size 9437184000",
        "terminate called after throwing an instance of 'std::bad_alloc'",
    ],
)
def test_out_of_memory_is_told_from_other_crashes(line: str) -> None:
    log = saved.text("log_plain.txt") + line + "\nllama_model_load: failed to load model\n"
    found = ENGINE.diagnose(log, 134)
    assert found is not None
    assert found.kind is FailureKind.OUT_OF_MEMORY


def test_native_message_for_a_removed_flag_is_understood() -> None:
    line = 'error while handling argument "--draft-max": the argument has been removed. use --spec-draft-n-max'
    found = ENGINE.diagnose(line, 1)
    assert found is not None
    assert found.kind is FailureKind.UNSUPPORTED


def test_fatal_signal_is_a_crash_even_with_a_silent_log() -> None:
    found = ENGINE.diagnose("last words\n", 139)
    assert found is not None
    assert found.kind is FailureKind.SERVER_CRASH
    assert found.evidence == ("last words",)
    assert "SIGSEGV" in found.message


def test_evidence_is_bounded() -> None:
    found = ENGINE.diagnose(("GGML_ASSERT " + "x" * 10_000 + "\n") * 100, 134)
    assert found is not None
    assert len(found.evidence) <= 5
    assert all(len(line) <= 300 for line in found.evidence)


def test_phases_of_a_start_follow_the_log() -> None:
    lines = saved.text("log_draft_simple.txt").splitlines()
    phases = list(dict.fromkeys(ENGINE.readiness("\n".join(lines[:i])) for i in range(len(lines))))
    assert phases == ["starting", "loading model", "loading draft model", "preparing slots", "ready"]
