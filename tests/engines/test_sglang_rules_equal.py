"""Equal configurations of SGLang are one, dead knobs are told, simpler ones come first."""

from __future__ import annotations

from typing import Any

import pytest

from sweeper.engines.sglang.spec import (
    baseline_config,
    is_speculative,
    rule_violations,
    simplicity,
    without_effect,
)
from sweeper.spec import FlagValue, ServerConfig
from tests.engines.sglang_cases import (
    BASE,
    CHAIN,
    H200,
    TREE,
    canonical,
    dead,
    host,
    with_flags,
)

NGRAM: dict[str, FlagValue] = {**BASE, "speculative_algorithm": "NGRAM"}
NO_NUMBERS = {
    "speculative_num_steps": None,
    "speculative_eagle_topk": None,
    "speculative_num_draft_tokens": None,
}


def numbers(flags: dict[str, FlagValue]) -> tuple[FlagValue | None, ...]:
    return tuple(flags.get(f"speculative_{name}") for name in ("num_steps", "eagle_topk", "num_draft_tokens"))


# Equal things.


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"speculative_num_steps": 3.0}, {}),
        ({"speculative_accept_threshold_single": 1}, {}),
        ({"speculative_attention_mode": "prefill"}, {}),
        ({"speculative_draft_model_revision": "main"}, {}),
        ({"enable_mixed_chunk": True}, {}),
        ({"enable_mixed_chunk": False}, {}),
        ({"speculative_token_map": "/map"}, {}),
        ({"num_continuous_decode_steps": 4}, {}),
        ({"disable_custom_all_reduce": True, "tp_size": 8}, {"tp_size": 8}),
        ({"speculative_ngram_capacity": 5}, {}),
        ({"speculative_adaptive_config": "/a.json"}, {}),
        ({"mem_fraction_static": 0.85, "dp_size": 1}, {}),
    ],
)
def test_flags_without_effect_collapse_to_one_configuration(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert canonical(with_flags(CHAIN, **one)) == canonical(with_flags(CHAIN, **other))


@pytest.mark.parametrize("none", ["none", "None", "NONE", False, None])
def test_no_algorithm_is_no_speculation_and_drops_its_flags(none: FlagValue | None) -> None:
    config = with_flags(TREE, speculative_algorithm=none)
    assert canonical(config) == canonical(with_flags(BASE))
    assert not is_speculative(config.flags)
    assert rule_violations(config, host()) == []


def test_baseline_is_the_same_without_speculation() -> None:
    baseline = baseline_config(with_flags(TREE, page_size=1), host())
    assert baseline.flags == canonical(with_flags(BASE, page_size=1))
    assert not is_speculative(baseline.flags)
    assert is_speculative(CHAIN)


def test_custom_all_reduce_counts_on_two_gpus_and_with_nvlink() -> None:
    two = with_flags(BASE, disable_custom_all_reduce=True, tp_size=2)
    eight = with_flags(BASE, disable_custom_all_reduce=True, tp_size=8)
    assert "disable_custom_all_reduce" in canonical(two)
    assert "disable_custom_all_reduce" in canonical(eight, host(gpu=H200))
    assert "disable_custom_all_reduce" not in canonical(eight)
    ipc = ServerConfig(flags=eight.flags, env={"SGLANG_ENABLE_PCIE_IPC_ALLREDUCE": "1"})
    assert "disable_custom_all_reduce" in canonical(ipc)


def test_mixed_chunk_is_kept_where_the_version_keeps_it() -> None:
    config = with_flags(CHAIN, enable_mixed_chunk=True)
    assert "enable_mixed_chunk" in canonical(config, host("0.5.23"))
    assert "enable_mixed_chunk" not in canonical(config, host("0.5.15.post1"))


# What is told.


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"num_continuous_decode_steps": 4}, "num_continuous_decode_steps"),
        ({"speculative_token_map": "/map"}, "speculative_token_map"),
        ({"enable_mixed_chunk": True}, "enable_mixed_chunk"),
        ({"speculative_adaptive": True, "speculative_eagle_topk": 4}, "speculative_adaptive"),
        ({"speculative_ngram_max_bfs_breadth": 4}, "speculative_ngram_max_bfs_breadth"),
        ({"speculative_algorithm": "NGRAM"}, "speculative_draft_model_path"),
        ({"speculative_algorithm": "NGRAM", "speculative_eagle_topk": 2}, "speculative_eagle_topk"),
        ({"speculative_algorithm": "none"}, "speculative_num_steps"),
        ({"disable_custom_all_reduce": True, "tp_size": 8}, "disable_custom_all_reduce"),
    ],
)
def test_dead_knob_is_told_by_name_with_the_reason(flags: dict[str, Any], name: str) -> None:
    (line,) = [line for line in dead(with_flags(CHAIN, **flags)).split("\n") if line.startswith(f"{name}: ")]
    assert len(line) > len(name) + 10


def test_dead_variable_is_told_too() -> None:
    config = ServerConfig(flags=CHAIN, env={"CUDA_DEVICE_MAX_CONNECTIONS": "1", "SGLANG_ENABLE_SPEC_V2": "1"})
    assert [line.split(":")[0] for line in without_effect(config, host())] == list(config.env)


def test_nothing_is_told_of_a_configuration_in_which_everything_counts() -> None:
    assert without_effect(with_flags(TREE), host()) == []
    assert without_effect(with_flags(BASE), host()) == []


# Simplicity.


def test_simpler_means_no_speculation_then_ngram_then_chain_then_tree() -> None:
    ordered = [
        BASE,
        {**BASE, "page_size": 16},
        canonical(with_flags(NGRAM)),
        canonical(with_flags(CHAIN, speculative_num_steps=2)),
        canonical(with_flags(CHAIN)),
        canonical(with_flags(CHAIN, page_size=16)),
        canonical(with_flags(TREE, speculative_num_draft_tokens=6)),
        canonical(with_flags(TREE)),
    ]
    keys = [simplicity(flags) for flags in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
