"""SGLang's pages about itself: counters, identity and the settings in force."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import Counters, Identity
from sweeper.engines.sglang.reports import MAX_ENTRIES, parse_counters, parse_effective, parse_identity
from tests.engines import sglang_saved
from tests.engines.test_sglang_answers import JSON


@pytest.mark.parametrize(("name", "steps"), [("e3_before", 4), ("e3_after", 2577), ("wrong_flag", 3863)])
def test_saved_page_counts_verify_steps(name: str, steps: int) -> None:
    assert parse_counters(sglang_saved.page(f"metrics_{name}.txt")) == Counters(num_drafts=steps)


def test_gauges_are_not_counters() -> None:
    assert parse_counters(sglang_saved.page("metrics_baseline.txt")) == Counters()
    assert parse_counters('sglang:spec_accept_length{model_name="m"} 3.6\n') == Counters()


def test_ranks_are_added_up() -> None:
    page = 'sglang:spec_verify_calls_total{dp_rank="0"} 2.0\nsglang:spec_verify_calls_total{dp_rank="1"} 3.0\n'
    assert parse_counters(page) == Counters(num_drafts=5)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-3", "x"])
def test_impossible_counter_is_not_one(value: str) -> None:
    assert parse_counters(f"sglang:spec_verify_calls_total {value}\n") == Counters()


@given(at=st.integers(0, 24_000), junk=st.text(max_size=40), cut=st.integers(0, 40))
def test_damaged_metrics_page_never_raises(at: int, junk: str, cut: int) -> None:
    page = sglang_saved.page("metrics_e3_after.txt")
    parse_counters(page[:at] + junk + page[at + cut :])


@given(rest=st.text(max_size=40))
def test_damaged_counter_line_never_raises(rest: str) -> None:
    parse_counters("sglang:spec_verify_calls_total" + rest)


def test_identity_is_the_served_name_and_the_path() -> None:
    info = sglang_saved.server_info("e3_after") | {"served_model_name": "nonce-1"}
    assert parse_identity(info) == Identity("nonce-1", "/models/target")


@pytest.mark.parametrize("info", [{}, {"served_model_name": "n"}, {"served_model_name": 1, "model_path": "/m"}])
def test_missing_identity_is_a_value_error(info: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="served_model_name"):
        parse_identity(info)


def test_saved_settings_have_what_was_asked_and_what_was_resolved() -> None:
    found = parse_effective(sglang_saved.server_info("e3_after"))
    assert found["speculative_algorithm"] == "EAGLE3"
    assert (found["speculative_num_steps"], found["speculative_num_draft_tokens"]) == (3, 4)
    assert found["attention_backend"] == "fa3"
    assert found["max_total_num_tokens"] == 15551141
    assert found["effective_max_running_requests_per_dp"] == 48
    assert found["memory_usage_kvcache"] == 118.65
    assert found["version"] == "0.5.15.post1"


def test_settings_without_a_value_are_left_out() -> None:
    found = parse_effective(sglang_saved.server_info("baseline"))
    assert "speculative_algorithm" not in found
    assert "quantization" not in found


def test_the_schedulers_own_copy_wins() -> None:
    found = parse_effective(sglang_saved.server_info("e3_after"))
    assert found["context_length"] == 32768  # null in the front's copy
    assert found["disable_chunked_prefix_cache"] is True  # false there


def test_figures_that_change_with_every_request_are_no_settings() -> None:
    found = parse_effective(sglang_saved.server_info("e3_after"))
    assert not found.keys() & {"last_gen_throughput", "avg_spec_accept_length", "status"}
    assert not [name for name in found if name.startswith("_")]


def test_graphs_are_told_by_what_was_resolved() -> None:
    found = parse_effective(sglang_saved.server_info("e3_after"))
    assert found["cuda_graph_backend_decode"] == "full"
    assert found["cuda_graph_max_bs_decode"] == 8
    assert found["cuda_graph_bs_decode"] == "1 2 3 4 5 6 7 8"
    assert found["disable_cuda_graph"] is False


@pytest.mark.parametrize(
    ("decode", "prefill", "all_off"),
    [("disabled", "disabled", True), ("disabled", "breakable", False), ("full", "disabled", False)],
)
@pytest.mark.parametrize("claimed", [True, False])
def test_the_switch_does_not_lie(decode: str, prefill: str, all_off: bool, claimed: bool) -> None:
    config = {"decode": {"backend": decode, "max_bs": 8, "bs": [1, 2]}, "prefill": {"backend": prefill}}
    found = parse_effective({"disable_cuda_graph": claimed, "cuda_graph_config": config})
    assert found["disable_cuda_graph"] is all_off
    assert found["disable_decode_cuda_graph"] is (decode == "disabled")
    assert ("cuda_graph_bs_decode" in found) is (decode != "disabled")


def test_lists_of_older_versions_are_kept_as_text() -> None:
    found = parse_effective({"cuda_graph_bs": [1, 2, 4], "lora_paths": [], "disable_cuda_graph": True})
    assert found == {"cuda_graph_bs": "1 2 4", "disable_cuda_graph": True}


def test_secrets_are_never_kept() -> None:
    info = {
        "api_key": "s3cret",
        "admin_api_key": "s3cret",
        "ssl_keyfile_password": "s3cret",
        "launch_command": "x",
    }
    assert parse_effective(info) == {}


def test_settings_are_bounded() -> None:
    info: dict[str, Any] = {f"flag_{n}": "x" * 5000 for n in range(5000)}
    found = parse_effective(info)
    assert len(found) == MAX_ENTRIES
    assert max(len(str(value)) for value in found.values()) <= 300


PARTS = st.sampled_from(["internal_states", "cuda_graph_config", "memory_usage", "decode", "bs", "flag"])


@given(
    info=st.dictionaries(PARTS, JSON | st.lists(st.dictionaries(PARTS, JSON, max_size=3), max_size=2), max_size=4)
)
def test_hostile_server_info_never_raises(info: dict[str, object]) -> None:
    assert all(isinstance(value, str | int | float) for value in parse_effective(info).values())
