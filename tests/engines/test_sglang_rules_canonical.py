"""Equal configurations of SGLang are made one, dead knobs are told, simpler ones come first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import HostFacts
from sweeper.engines.sglang_spec import (
    baseline_config,
    canonical_config,
    is_speculative,
    reported_flags,
    rule_violations,
    simplicity,
    without_effect,
)
from sweeper.engines.sglang_table import CHOICES, REAL, WHOLE
from sweeper.spec import FlagValue, ServerConfig
from tests.engines.sglang_cases import (
    B200,
    BASE,
    CHAIN,
    DEEPSEEK,
    H200,
    KIMI,
    KIMI_EAGLE3,
    LLAMA,
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


# Rewrites.


@pytest.mark.parametrize("tokens", [2, 4, 16, None])
def test_one_branch_has_steps_plus_one_draft_tokens(tokens: int | None) -> None:
    assert numbers(canonical(with_flags(CHAIN, speculative_num_draft_tokens=tokens))) == (3, 1, 4)


def test_branches_keep_their_draft_tokens() -> None:
    assert numbers(canonical(with_flags(TREE))) == (3, 4, 8)


@pytest.mark.parametrize(
    ("target", "algorithm", "expected"),
    [
        (LLAMA, "EAGLE3", (5, 4, 8)),
        (LLAMA, "STANDALONE", (3, 1, 4)),
        (DEEPSEEK, "EAGLE", (3, 1, 4)),
        (KIMI, "EAGLE3", (3, 1, 4)),
    ],
)
def test_numbers_that_are_not_set_are_filled_in(
    target: dict[str, Any], algorithm: str, expected: tuple[int, ...]
) -> None:
    config = with_flags(CHAIN, speculative_algorithm=algorithm, **NO_NUMBERS)
    assert numbers(canonical(config, host(target=target))) == expected


def test_nextn_is_eagle() -> None:
    nextn = canonical(with_flags(CHAIN, speculative_algorithm="NEXTN"))
    assert nextn == canonical(with_flags(CHAIN, speculative_algorithm="EAGLE"))


def test_gemma4_assistant_makes_frozen_kv_mtp_of_eagle() -> None:
    facts = host(draft={"architectures": ["Gemma4AssistantForCausalLM"]})
    assert (
        canonical(with_flags(CHAIN, speculative_algorithm="EAGLE"), facts)["speculative_algorithm"]
        == "FROZEN_KV_MTP"
    )


def test_speculation_is_limited_to_48_requests_and_the_baseline_is_not() -> None:
    assert canonical(with_flags(CHAIN, max_running_requests=None))["max_running_requests"] == 48
    assert "max_running_requests" not in canonical(with_flags(BASE, max_running_requests=None))


@pytest.mark.parametrize(
    ("backend", "page", "version", "expected"),
    [
        ("flashmla", 16, "0.5.15.post1", 64),
        ("trtllm_mla", None, "0.5.15.post1", 64),
        ("trtllm_mla", 32, "0.5.15.post1", 32),
        ("cutlass_mla", 64, "0.5.15.post1", 128),
        ("trtllm_mha", 1, "0.5.15.post1", 64),
        ("trtllm_mha", 128, "0.5.15.post1", 64),
        ("trtllm_mha", 128, "0.5.23", 128),
        ("triton", 16, "0.5.23", 16),
    ],
)
def test_backend_forces_its_page_size(backend: str, page: int | None, version: str, expected: int) -> None:
    config = with_flags(BASE, attention_backend=backend, page_size=page)
    assert canonical(config, host(version, gpu=B200))["page_size"] == expected


def test_split_into_equal_halves_is_no_split() -> None:
    split = with_flags(BASE, prefill_attention_backend="fa3", decode_attention_backend="fa3")
    assert canonical(split) == canonical(with_flags(BASE, attention_backend="fa3"))


def test_fa3_with_fp8_e5m2_is_triton() -> None:
    config = with_flags(BASE, attention_backend="fa3", kv_cache_dtype="fp8_e5m2")
    assert canonical(config)["attention_backend"] == "triton"


def test_ngram_takes_its_breadth_for_branches() -> None:
    facts = host("0.5.23")
    assert numbers(canonical(with_flags(NGRAM), facts)) == (1, 10, 12)
    assert numbers(canonical(with_flags(NGRAM, speculative_ngram_max_bfs_breadth=4), facts)) == (3, 4, 12)
    assert numbers(canonical(with_flags(NGRAM), host("0.5.10.post1"))) == (None, 10, 12)


def test_adaptive_starts_in_the_middle() -> None:
    config = with_flags(CHAIN, speculative_adaptive=True, **NO_NUMBERS)
    assert numbers(canonical(config)) == (3, 1, 4)


def test_dflash_takes_the_block_of_its_draft() -> None:
    flags = with_flags(BASE, speculative_algorithm="DFLASH", speculative_draft_model_path="/draft")
    assert numbers(canonical(flags, host(draft={**LLAMA, "block_size": 8}))) == (1, 1, 8)
    assert numbers(canonical(flags, host(draft={**LLAMA, "dflash_config": {"block_size": 4}}))) == (1, 1, 4)
    assert numbers(canonical(flags, host(draft=LLAMA))) == (1, 1, 16)


def test_overlap_is_what_the_version_makes_of_it() -> None:
    v2 = {"SGLANG_ENABLE_SPEC_V2": "1"}

    def is_off(version: str, flags: dict[str, FlagValue], env: dict[str, str]) -> bool:
        return (
            "disable_overlap_schedule" in canonical_config(ServerConfig(flags=flags, env=env), host(version)).flags
        )

    asked: dict[str, FlagValue] = {**CHAIN, "disable_overlap_schedule": True}
    assert [is_off("0.5.10.post1", CHAIN, env) for env in ({}, v2)] == [True, False]
    assert [is_off("0.5.10.post1", asked, env) for env in ({}, v2)] == [True, False]
    assert [is_off("0.5.12", flags, {}) for flags in (CHAIN, TREE)] == [False, True]
    assert [is_off("0.5.13", TREE, env) for env in ({}, {"SGLANG_ENABLE_SPEC_V2": "0"})] == [False, True]
    assert [is_off("0.5.23", flags, {"SGLANG_ENABLE_SPEC_V2": "0"}) for flags in (CHAIN, asked)] == [False, True]


def test_data_parallel_attention_is_reported_divided_and_launched_whole() -> None:
    config = with_flags(BASE, tp_size=8, dp_size=4, enable_dp_attention=True, chunked_prefill_size=8192)
    config = config.with_flags({"schedule_conservativeness": 1})
    assert canonical(config)["chunked_prefill_size"] == 8192
    reported = reported_flags(config, host())
    assert (reported["chunked_prefill_size"], reported["schedule_conservativeness"]) == (2048, 0.3)


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


# Anything.

VERSIONS = st.sampled_from(["0.5.8", "0.5.10.post1", "0.5.12", "0.5.15.post1", "0.5.23", "9.9.9", "nonsense", ""])
CHOSEN = st.one_of(
    *(st.tuples(st.just(name), st.integers(0, 20)) for name in WHOLE),
    *(st.tuples(st.just(name), st.floats(0, 1)) for name in REAL),
    *(st.tuples(st.just(name), st.sampled_from(sorted(values))) for name, values in CHOICES.items()),
    st.tuples(
        st.just("speculative_algorithm"),
        st.sampled_from(
            ["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO", "none", "X"]
        ),
    ),
    st.tuples(
        st.sampled_from(
            [
                "speculative_adaptive",
                "enable_dp_attention",
                "enable_mixed_chunk",
                "disable_overlap_schedule",
                "new",
            ]
        ),
        st.booleans(),
    ),
    st.tuples(st.sampled_from(sorted(CHAIN)), st.text(max_size=5) | st.integers(-3, 3) | st.booleans()),
)


@given(
    st.lists(CHOSEN, max_size=8), VERSIONS, st.sampled_from(["", "0", "1", "x"]), st.sampled_from([LLAMA, KIMI])
)
def test_canonical_is_a_fixed_point_and_keeps_what_is_wrong(
    chosen: list[tuple[str, Any]], version: str, v2: str, target: dict[str, Any]
) -> None:
    env = {"SGLANG_ENABLE_SPEC_V2": v2} if v2 else {}
    config = ServerConfig(flags={**CHAIN, **dict(chosen)}, env=env)
    facts = host(version, target, KIMI_EAGLE3)
    once = canonical_config(config, facts)
    assert canonical_config(once, facts) == once
    if not (told := rule_violations(config, facts)):
        assert rule_violations(once, facts) == told
    without_effect(config, facts)
    reported_flags(config, facts)
    simplicity(config.flags)
    assert not is_speculative(baseline_config(config, facts).flags)


@given(st.dictionaries(st.text(max_size=12), st.text() | st.integers() | st.booleans(), max_size=5))
def test_unheard_of_flags_never_crash(flags: dict[str, FlagValue]) -> None:
    facts = HostFacts()
    config = ServerConfig(flags=flags)
    assert canonical_config(canonical_config(config, facts), facts) == canonical_config(config, facts)
    rule_violations(config, facts)
    without_effect(config, facts)
