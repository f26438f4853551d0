"""SGLang's decode lines: what they say in every version, and what they give away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.sglang.decode import DecodeLine, decode_lines, running_mistakes
from sweeper.spec import ServerConfig
from tests.engines import sglang_saved

T = "[2026-11-29 18:31:24] "
EAGLE = ServerConfig(flags={"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3})

V53 = (
    "Decode batch. #running-req: 2, #token: 9, token usage: 0.00, accept len: 2.17, accept rate: 0.54, "
    "cuda graph: True, gen throughput (token/s): 53.20, #queue-req: 1, "
)
V523 = (
    "Decode batch [120], #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.50, accept rate: 0.50, "
    "cap len: 3.00, block accept len: 9.99, cuda graph: False, gen throughput (token/s): 5.00, #queue-req: 0, x: 1"
)
CPU = "Decode batch, #running-req: 1, #token: 9, cpu graph: False, gen throughput (token/s): 19.1, #queue-req: 0"


def test_saved_decode_line() -> None:
    assert decode_lines(sglang_saved.log("e3_s3k1d4"))[-1] == DecodeLine(1, 2.65, True)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (V53, DecodeLine(2, 2.17, True)),
        (V523, DecodeLine(1, 2.5, False)),
        (CPU, DecodeLine(1, None, None)),
    ],
)
def test_decode_lines_of_other_versions(line: str, expected: DecodeLine) -> None:
    assert decode_lines(f"noise\n{T}{line}\n") == [expected]


def test_decoding_without_graphs_is_a_mistake() -> None:
    found = running_mistakes(ServerConfig(), sglang_saved.log("baseline_nograph"))
    assert found == ["cuda graph: False in 65 of 65 decode lines, though CUDA graphs are on"]


@pytest.mark.parametrize(
    "flags",
    [
        {"disable_cuda_graph": True},
        {"disable_decode_cuda_graph": True},
        {"cuda_graph_backend_decode": "disabled"},
        {"cuda_graph_config": '{"decode": {"backend": "disabled"}}'},
        {"attention_backend": "torch_native"},
        {"device": "cpu"},
    ],
)
def test_decoding_without_graphs_is_fine_when_asked_for(flags: dict[str, str | bool]) -> None:
    assert running_mistakes(ServerConfig(flags=flags), sglang_saved.log("baseline_nograph")) == []


def test_a_backend_that_is_named_overrules_the_switch() -> None:
    config = ServerConfig(flags={"disable_cuda_graph": True, "cuda_graph_backend_decode": "full"})
    assert running_mistakes(config, sglang_saved.log("baseline_nograph"))


def test_a_batch_above_the_largest_graph_is_named() -> None:
    (found,) = running_mistakes(EAGLE, sglang_saved.log("e3_s3k1d4"))
    assert found.startswith("cuda graph: False in 1 of 41 decode lines")
    assert found.endswith("no graph was captured for 16 requests at once")


def test_a_server_that_does_what_it_was_asked_makes_no_mistakes() -> None:
    assert running_mistakes(ServerConfig(), sglang_saved.log("baseline_default")) == []
    config = ServerConfig(flags={"speculative_algorithm": "EAGLE3", "speculative_num_steps": 5})
    assert running_mistakes(config, sglang_saved.log("e3_s5k4d8_flashinfer")) == []


def test_speculation_that_is_not_there_is_a_mistake() -> None:
    (found,) = running_mistakes(EAGLE, sglang_saved.log("baseline_default"))
    assert "no accept length" in found


def test_speculation_that_nobody_asked_for_is_a_mistake() -> None:
    (found,) = running_mistakes(ServerConfig(), sglang_saved.log("ngram"))
    assert "no speculation was asked for" in found


def test_simulated_acceptance_is_seen() -> None:
    line = f"{T}Decode batch, #running-req: 1, accept len: 4.00, accept rate: 1.00, cuda graph: True\n"
    assert "simulated" in running_mistakes(EAGLE, line * 5)[0]
    assert running_mistakes(EAGLE, line * 4) == []  # too few to tell
    assert running_mistakes(EAGLE, line * 5 + line.replace("4.00", "3.10")) == []


PIECES = ["Decode batch, ", "#running-req: ", "accept len: ", "cuda graph: False", "9" * 30, "1.5", "\n", ", "]


@given(log=st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map("".join), config=st.text())
def test_hostile_lines_never_raise(log: str, config: str) -> None:
    running_mistakes(ServerConfig(flags={**EAGLE.flags, "cuda_graph_config": config}), log)
