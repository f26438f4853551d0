"""SGLang's own rewrites are foreseen, and nothing makes the rules crash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import HostFacts
from sweeper.engines.sglang.spec import (
    baseline_config,
    canonical_config,
    is_speculative,
    reported_flags,
    rule_violations,
    simplicity,
    without_effect,
)
from sweeper.engines.sglang.table import CHOICES, REAL, WHOLE
from sweeper.spec import FlagValue, ServerConfig
from tests.engines.sglang_cases import (
    B200,
    BASE,
    CHAIN,
    DEEPSEEK,
    KIMI,
    KIMI_EAGLE3,
    LLAMA,
    TREE,
    canonical,
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
