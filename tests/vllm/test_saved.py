"""The engine reads what a real vLLM said."""

from __future__ import annotations

import pytest

from sweeper.engines.base import Counters, HostFacts, Identity, StreamedResponse
from sweeper.engines.vllm import Vllm
from sweeper.measuring.results import grown
from sweeper.spec import FlagValue, ServerConfig
from tests.vllm import saved

ENGINE = Vllm()
ASKED: dict[str, FlagValue] = {"dtype": "float32", "max_model_len": 2048, "max_num_seqs": 4, "enforce_eager": True}
NGRAM: dict[str, FlagValue] = {
    "spec_method": "ngram",
    "spec_tokens": 4,
    "spec_prompt_lookup_max": 4,
    "spec_prompt_lookup_min": 2,
}
DRAFT: dict[str, FlagValue] = {"spec_method": "draft_model", "spec_model": "/models/draft", "spec_tokens": 3}


def test_an_answer_is_read_whole() -> None:
    answer = ENGINE.parse(saved.streamed("ngram"))
    assert answer.text.startswith("The cat sat on the mat by the door. The dog")
    assert (answer.num_output_tokens, answer.num_prompt_tokens, answer.finish_reason) == (32, 65, "length")
    assert answer.ttft_ms == 30  # the first chunk only says who speaks
    assert answer.num_drafted_tokens is None, "vLLM's answers do not tell"
    assert len(answer.chunk_ms) < 32, "several tokens arrive at once"


def test_an_answer_that_was_cut_off_is_no_answer() -> None:
    whole = saved.streamed("ngram")
    with pytest.raises(ValueError, match="ended early"):
        ENGINE.parse(StreamedResponse(whole.lines[:-4], 1.0))


@pytest.mark.parametrize(
    ("case", "counters"),
    [("ngram", Counters(7, 28, 23, (7, 6, 5, 5))), ("draft_model", Counters(8, 24, 22, (8, 8, 6)))],
)
def test_the_counters_of_drafts_are_exact(case: str, counters: Counters) -> None:
    found = ENGINE.counters(saved.text(case, "metrics.prom.txt"))
    assert found == counters
    assert sum(found.accepted_per_position) == found.num_accepted_tokens
    answer = ENGINE.parse(saved.streamed(case))
    # Every step writes what it accepted and one token more; a step without drafts is not counted.
    assert 1 + (found.num_accepted_tokens or 0) + (found.num_drafts or 0) <= answer.num_output_tokens + 4
    assert grown(found, found).num_drafts == 0


def test_several_engines_of_one_server_count_together() -> None:
    page = saved.text("ngram", "metrics.prom.txt")
    values = [line for line in page.splitlines() if line.startswith("vllm:") and "_created" not in line]
    second = [line.replace('engine="0"', 'engine="1"') for line in values if "spec_decode" in line]
    assert ENGINE.counters("\n".join([*page.splitlines(), *second]) + "\n").num_drafts == 14


@pytest.mark.parametrize(("case", "drafting"), [("ngram", NGRAM), ("draft_model", DRAFT)])
def test_the_server_reports_what_it_was_given(case: str, drafting: dict[str, FlagValue]) -> None:
    asked = ENGINE.canonical(ServerConfig(flags={**ASKED, **drafting}), HostFacts())
    told = ENGINE.effective(saved.info(case))
    reported = ENGINE.reported(asked, HostFacts())
    assert {name: told.get(name) for name in reported} == dict(reported)
    assert ENGINE.identity(saved.info(case)) == Identity("nonce-1", "/models/target")


@pytest.mark.parametrize(
    ("answer", "is_flushed"),
    [(b'{"success":true}', True), (b'{"success":false}', False), (b"", True), (b"no", False)],
)
def test_a_cache_that_was_not_emptied_is_told_in_the_answer_alone(answer: bytes, is_flushed: bool) -> None:
    assert ENGINE.flushed(answer) is is_flushed


def test_what_vllm_chooses_itself_is_no_surprise() -> None:
    asked = ServerConfig(flags={"dtype": "half", "kv_cache_dtype": "auto"})
    assert ENGINE.reported(asked, HostFacts()) == {"dtype": "float16"}


def phases(log: str) -> list[str]:
    """The phases of a start, each when it is first seen, as the log grows line by line."""
    seen: list[str] = []
    ends = [i for i, letter in enumerate(log) if letter in "\r\n"]
    for end in ends:
        if (phase := ENGINE.readiness(log[:end])) not in seen:
            seen.append(phase)
    return seen


def test_a_start_goes_through_its_phases() -> None:
    assert phases(saved.log("draft_model")) == [
        "starting",
        "init distributed",
        "loading weights",
        "loading draft weights",
        "allocating KV cache",
        "warming up",
        "ready",
    ]


def test_a_start_tells_how_far_it_is() -> None:
    log = saved.log("draft_model")
    bar = log.index("100% Completed | 1/1")
    assert ENGINE.progress(log[: bar + 40]) == "100 % (1 of 1)"
    assert ENGINE.progress(log) == ""


@pytest.mark.parametrize("case", saved.SERVED)
def test_a_healthy_log_shows_no_failure(case: str) -> None:
    log = saved.log(case)
    served = log[: log.index("Application startup complete") + 30]
    for code in (None, 0, 137, 143):
        assert ENGINE.diagnose(served, code) is None
    assert ENGINE.fatal_sign(log) == ""
    assert ENGINE.running_mistakes(ServerConfig(flags=ASKED), log) == []


def test_cuda_graphs_that_nobody_switched_off_are_told() -> None:
    asked = ServerConfig(flags={"max_num_seqs": 4})
    assert ENGINE.running_mistakes(asked, saved.log("ngram")) == [
        "CUDA graphs are off, though enforce_eager was not asked for"
    ]
    log = (
        "WARNING [compilation.py:1459] CUDAGraphMode.FULL is not supported with spec-decode for attention backend "
        "X (support: NEVER); setting cudagraph_mode=PIECEWISE\nINFO Using FLASH_ATTN attention backend out of p"
    )
    graphs, backend = ENGINE.running_mistakes(ServerConfig(flags={"attention_backend": "FLASHINFER"}), log)
    assert "setting cudagraph_mode=PIECEWISE" in graphs
    assert backend == "attention_backend: asked for FLASHINFER, the log names FLASH_ATTN"
