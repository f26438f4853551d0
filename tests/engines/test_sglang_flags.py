"""SGLang: names, types and bounds of single flags, and what a sweep must fix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.sglang.flags import config_mistakes, flag_mistakes, takes_whole_numbers
from sweeper.engines.sglang.table import BACKENDS, RENAMED
from sweeper.spec import FlagValue

# Names.


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("speculative_algo", "speculative_algorithm"),
        ("mem_fraction", "mem_fraction_static"),
        ("speculative_draft_model", "speculative_draft_model_path"),
        ("tp", "tp_size"),
        ("tensor_parallel_size", "tp_size"),
        ("speculative_num", "speculative_num_draft_tokens or speculative_num_steps"),
    ],
)
def test_abbreviation_and_other_spelling_are_refused_with_the_right_name(name: str, right: str) -> None:
    (line,) = flag_mistakes({name: (1,)})
    assert line.startswith(f"{name}: ")
    assert right in line


@pytest.mark.parametrize(
    "name",
    [
        "host",
        "port",
        "model_path",
        "model",
        "served_model_name",
        "nnodes",
        "node_rank",
        "dist_init_addr",
        "enable_metrics",
        "config",
    ],
)
def test_flag_that_every_launch_sets_is_refused(name: str) -> None:
    (line,) = flag_mistakes({name: ("x",)})
    assert "is set for every launch" in line


@pytest.mark.parametrize("name", ["--tp-size", "tp-size", "Tp_size", "", "tp_size; rm", "a" * 200])
def test_what_is_no_flag_name_is_refused(name: str) -> None:
    assert "is not a flag's name" in flag_mistakes({name: (1,)})[0]


@pytest.mark.parametrize("name", ["enable_something_new", "moe_runner_backend", "cuda_graph_config", "dcp_size"])
def test_flag_that_the_tables_do_not_know_is_left_to_the_host(name: str) -> None:
    assert flag_mistakes({name: (True,)}) == []


# Values.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("speculative_num_steps", 3),
        ("speculative_num_steps", 3.0),
        ("speculative_eagle_topk", 4),
        ("mem_fraction_static", 0.85),
        ("chunked_prefill_size", -1),
        ("enable_mixed_chunk", True),
        ("attention_backend", "triton"),
        ("speculative_algorithm", "EAGLE3"),
        ("speculative_algorithm", "none"),
        ("speculative_algorithm", "None"),
        ("speculative_accept_threshold_single", 1),
        ("speculative_draft_model_path", "org/name"),
        ("speculative_draft_model_path", "/models/draft with spaces"),
        ("cuda_graph_bs", "1 2 4 8"),
        ("cuda_graph_bs_decode", 4),
    ],
)
def test_legal_values_have_no_mistakes(name: str, value: FlagValue) -> None:
    assert flag_mistakes({name: (value,)}) == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("speculative_num_steps", "3", "whole number"),
        ("speculative_num_steps", 2.5, "whole number"),
        ("speculative_num_steps", True, "whole number"),
        ("speculative_eagle_topk", 0, "from 1 to 64"),
        ("max_running_requests", 0, "from 1"),
        ("max_total_tokens", -5, "at least 1"),
        ("chunked_prefill_size", 0, "-1 switches"),
        ("mem_fraction_static", 1.0, "between 0 and 1"),
        ("mem_fraction_static", 0, "between 0 and 1"),
        ("mem_fraction_static", "0.8", "must be a number"),
        ("speculative_accept_threshold_acc", 1.5, "from 0 to 1"),
        ("enable_mixed_chunk", "yes", "true (the bare flag)"),
        ("disable_cuda_graph", 1, "true (the bare flag)"),
        ("speculative_adaptive", "on", "true (the bare flag)"),
        ("attention_backend", "flash_attn", "triton"),
        ("attention_backend", True, "triton"),
        ("speculative_algorithm", "eagle3", "'EAGLE3'"),
        ("speculative_algorithm", "MEDUSA", "none, EAGLE"),
        ("speculative_algorithm", 3, "none, EAGLE"),
        ("speculative_draft_model_path", 7, "should be text"),
        ("speculative_draft_model_path", " ", "is empty"),
        ("speculative_draft_model_path", "~/draft", "absolute"),
        ("speculative_draft_model_path", "models/a/b", "absolute"),
        ("speculative_draft_model_path", "--trust-remote-code", "dash"),
        ("speculative_token_map", "a\nb", "control characters"),
        ("some_new_flag", "-x", "dash"),
        ("cuda_graph_bs", "1,2", "spaces between"),
        ("cuda_graph_bs", "", "spaces between"),
    ],
)
def test_illegal_value_is_told_with_the_name_first(name: str, value: FlagValue, words: str) -> None:
    (line,) = flag_mistakes({name: (value,)})
    assert line.startswith(f"{name}: ")
    assert words in line


def test_each_wrong_value_of_a_flag_is_told() -> None:
    assert len(flag_mistakes({"speculative_num_steps": (3, "a", 2.5), "tp": (8,)})) == 3


def test_every_backend_of_any_version_is_a_legal_value() -> None:
    assert flag_mistakes({"attention_backend": tuple(BACKENDS)}) == []


def test_whole_numbers_are_known_where_an_interval_of_real_ones_makes_no_sense() -> None:
    assert takes_whole_numbers("speculative_num_steps")
    assert not takes_whole_numbers("mem_fraction_static")
    assert not takes_whole_numbers("some_new_flag")


def test_no_spelling_points_to_another_spelling() -> None:
    assert not set(RENAMED) & set(RENAMED.values())


@given(st.text(max_size=30), st.lists(st.one_of(st.text(), st.integers(), st.floats(), st.booleans()), max_size=3))
def test_hostile_flags_are_told_not_raised(name: str, values: list[FlagValue]) -> None:
    finite = [value for value in values if not isinstance(value, float) or abs(value) < float("inf")]
    assert all(line.startswith(f"{name}: ") for line in flag_mistakes({name: finite}))


# What a sweep must fix.

FIXED: dict[str, FlagValue] = {
    "max_running_requests": 8,
    "mem_fraction_static": 0.85,
    "attention_backend": "triton",
}


@pytest.mark.parametrize("name", list(FIXED))
def test_flag_that_depends_on_the_speculation_has_to_be_fixed(name: str) -> None:
    fixed = {other: value for other, value in FIXED.items() if other != name}
    (line,) = config_mistakes(fixed, ())
    assert line.startswith(f"engine.flags.{name}: is missing; ")
    assert f"e.g. {name}: " in line


def test_searched_flag_needs_a_value_for_the_baseline_too() -> None:
    fixed = {"max_running_requests": 8, "mem_fraction_static": 0.85}
    assert "engine.flags.attention_backend" in config_mistakes(fixed, ["attention_backend"])[0]


def test_draft_backend_has_to_be_said_when_drafts_are_used() -> None:
    searched = ["speculative_draft_model_path"]
    assert "engine.flags.speculative_draft_attention_backend" in config_mistakes(FIXED, searched)[0]
    assert config_mistakes(FIXED, [*searched, "speculative_draft_attention_backend"]) == []
    assert config_mistakes({**FIXED, "speculative_draft_attention_backend": "triton"}, searched) == []
    assert config_mistakes(FIXED, ["speculative_num_steps"]) == []
