"""EAGLE or EAGLE3: drafts that do not fit are refused before the launch, whatever their config.json holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import HostFacts
from sweeper.engines.sglang.model import config_path, host_files, read_model
from sweeper.engines.sglang.spec import canonical_config, rule_violations
from tests.engines.sglang_cases import (
    CHAIN,
    DEEPSEEK,
    EAGLE,
    EAGLE3,
    KIMI,
    KIMI_EAGLE3,
    canonical,
    dead,
    host,
    violations,
    with_flags,
)

# The published night's mistake.


def test_eagle_flag_with_an_eagle3_draft_is_refused_with_the_figures() -> None:
    facts = host(target=KIMI, draft=KIMI_EAGLE3)
    told = violations(with_flags(CHAIN, speculative_algorithm="EAGLE"), facts)
    assert "it needs EAGLE3" in told
    assert "the target hands over 7168, its fusion layer expects 21504" in told


def test_nextn_is_eagle_here_too() -> None:
    assert "it needs EAGLE3" in violations(with_flags(CHAIN, speculative_algorithm="NEXTN"))


def test_right_pairs_are_legal() -> None:
    assert violations(with_flags(CHAIN), host(target=KIMI, draft=KIMI_EAGLE3)) == ""
    assert violations(with_flags(CHAIN, speculative_algorithm="EAGLE"), host(draft=EAGLE)) == ""


@pytest.mark.parametrize(
    "mark",
    [{"draft_vocab_size": 32000}, {"eagle_config": {"x": 1}}, {"architectures": ["Eagle3DeepseekV2ForCausalLM"]}],
)
def test_eagle3_is_known_by_any_of_its_marks(mark: dict[str, Any]) -> None:
    facts = host(version="0.5.15.post1", draft={**EAGLE, **mark})
    assert "it needs EAGLE3" in violations(with_flags(CHAIN, speculative_algorithm="EAGLE"), facts)


# Sizes.


def test_fusion_layer_of_another_width_is_refused() -> None:
    told = violations(with_flags(CHAIN), host(target=KIMI, draft={**KIMI_EAGLE3, "hidden_size": 2048}))
    assert "its fusion layer expects 6144 (3 x 2048), the target hands over 21504 (3 x 7168)" in told


def test_target_hidden_size_counts_where_it_is_told() -> None:
    narrow = {**KIMI_EAGLE3, "hidden_size": 2048, "target_hidden_size": 7168}
    assert violations(with_flags(CHAIN), host(target=KIMI, draft=narrow)) == ""
    wrong = {**KIMI_EAGLE3, "target_hidden_size": 4096}
    assert "3 x 4096" in violations(with_flags(CHAIN), host(target=KIMI, draft=wrong))


def test_nested_text_config_of_the_target_counts() -> None:
    assert read_model(json.dumps(KIMI)).hidden_size == 7168
    assert read_model(json.dumps(KIMI)).is_mla


def test_vocabulary_of_another_model_is_refused() -> None:
    assert "has 128256 tokens, the target 163840" in violations(
        with_flags(CHAIN), host(target=KIMI, draft={**KIMI_EAGLE3, "vocab_size": 128256})
    )
    assert "more than there are" in violations(
        with_flags(CHAIN), host(draft={**EAGLE3, "draft_vocab_size": 999999})
    )


def test_draft_made_for_a_shorter_context_is_refused_until_the_context_is_set() -> None:
    facts = host(draft={**EAGLE3, "max_position_embeddings": 2048})
    assert "context_length 131072" in violations(with_flags(CHAIN), facts)
    assert violations(with_flags(CHAIN, context_length=2048), facts) == ""


def test_rope_factor_lengthens_the_context_as_sglang_counts_it() -> None:
    scaled = {**EAGLE3, "max_position_embeddings": 2048, "rope_scaling": {"rope_type": "linear", "factor": 64}}
    assert violations(with_flags(CHAIN), host(draft=scaled)) == ""
    llama3 = {**scaled, "rope_scaling": {"rope_type": "llama3", "factor": 64}}
    assert "made for 2048" in violations(with_flags(CHAIN), host(draft=llama3))


# Targets that are their own draft.


def test_deepseek_is_its_own_draft_under_eagle() -> None:
    config = with_flags(CHAIN, speculative_algorithm="EAGLE", speculative_draft_model_path=None)
    facts = host(target=DEEPSEEK)
    assert violations(config, facts) == ""
    assert canonical(config, facts)["speculative_draft_model_path"] == "/model"


def test_kimi_has_no_draft_layer_of_its_own() -> None:
    config = with_flags(CHAIN, speculative_algorithm="EAGLE", speculative_draft_model_path=None)
    k2 = {**DEEPSEEK, "num_nextn_predict_layers": 0}
    assert "num_nextn_predict_layers 0" in violations(config, host(target=k2))


# What cannot be known.


def test_draft_of_the_hub_is_legal_and_noticed() -> None:
    config = with_flags(CHAIN, speculative_draft_model_path="org/draft")
    assert violations(config) == ""
    assert "org/draft is no folder of the host" in dead(config)
    assert "no folder" not in dead(with_flags(CHAIN))


def test_draft_that_was_not_looked_for_is_not_called_missing() -> None:
    facts = HostFacts("0.5.15.post1", "/model", files={})
    assert rule_violations(with_flags(CHAIN), facts) == []


# Files.


def test_each_local_model_is_asked_for_once() -> None:
    flags = {"speculative_draft_model_path": ("/a", "/b/", "org/name", "/a", 3, "none.gguf", "/c.gguf")}
    assert host_files(flags, "/model") == ("/model/config.json", "/a/config.json", "/b/config.json")
    assert host_files({}, "org/model") == ()
    assert config_path("/a\0b") == ""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 200_000, "is not JSON"),
        ("[]", "is not a JSON object"),
        ("null", "is not a JSON object"),
        ('{"a": "' + "x" * 1_100_000 + '"}', "is larger"),
    ],
)
def test_config_that_is_none_is_told(text: str, error: str) -> None:
    assert error in read_model(text).error


@pytest.mark.parametrize(
    "config",
    [
        {"hidden_size": "7168", "vocab_size": -1, "architectures": "Llama", "text_config": []},
        {"hidden_size": True, "vocab_size": 1e9, "architectures": [None], "eagle_config": []},
        {"hidden_size": 10**30, "max_position_embeddings": None, "rope_scaling": {"factor": "x"}},
        {"architectures": [], "dflash_config": 3, "block_size": 0},
    ],
)
def test_nonsense_in_a_config_is_unknown(config: dict[str, Any]) -> None:
    model = read_model(json.dumps(config))
    assert (model.error, model.hidden_size, model.vocab_size, model.architecture) == ("", None, None, "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
KEYS = st.sampled_from(
    [*EAGLE3, "text_config", "kv_lora_rank", "rope_scaling", "eagle_config", "target_hidden_size"]
)


@given(st.dictionaries(KEYS, JSON, max_size=6), st.dictionaries(KEYS, JSON, max_size=6))
def test_no_config_makes_a_rule_raise(target: dict[str, Any], draft: dict[str, Any]) -> None:
    facts = host(target=target, draft=draft)
    rule_violations(with_flags(CHAIN), facts)
    once = canonical_config(with_flags(CHAIN, speculative_num_steps=None, speculative_eagle_topk=None), facts)
    assert canonical_config(once, facts) == once
