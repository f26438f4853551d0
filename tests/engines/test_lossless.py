"""Which settings may write other text by design, which drafters remember, what a host's environment fakes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import Engine, HostFacts
from sweeper.engines.environ import environ_argv, parse_environ
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.llamacpp.flags import TYPES
from sweeper.engines.sglang import SGLang
from sweeper.spec import FlagValue, ServerConfig
from tests.engines.test_contract import configs

SGLANG, LLAMACPP = SGLang(), LlamaCpp()
EAGLE3: dict[str, FlagValue] = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}


def lossy(
    engine: Engine, flags: dict[str, FlagValue], usual: dict[str, FlagValue] | None = None, **env: str
) -> list[str]:
    """What is lossy under `flags`, next to a baseline with `usual` ones."""
    config = engine.canonical(ServerConfig(flags={**(usual or {}), **flags}, env=env), HostFacts())
    return engine.lossy(config, engine.baseline(ServerConfig(flags=usual or {}), HostFacts()))


@pytest.mark.parametrize(
    "flags",
    [
        EAGLE3,
        {**EAGLE3, "speculative_draft_model_quantization": "fp8", "speculative_draft_kv_cache_dtype": "fp8_e4m3"},
        {**EAGLE3, "speculative_algorithm": "EAGLE", "speculative_token_map": "/maps/hot.pt"},
        {**EAGLE3, "speculative_use_rejection_sampling": True},
        {**EAGLE3, "speculative_accept_threshold_single": 1.0, "speculative_adaptive": True},
        {**EAGLE3, "attention_backend": "triton", "speculative_attention_mode": "decode"},
        {"speculative_algorithm": "NGRAM", "tp_size": 2, "disable_cuda_graph": True},
        {"fp8_gemm_runner_backend": "cutlass", "moe_runner_backend": "triton", "kv_cache_dtype": "auto"},
    ],
)
def test_exact_verification_and_other_orders_of_rounding_are_not_lossy(flags: dict[str, FlagValue]) -> None:
    assert lossy(SGLANG, flags) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("speculative_accept_threshold_single", 0.9),
        ("speculative_accept_threshold_acc", 0.5),
        ("kv_cache_dtype", "fp8_e5m2"),
        ("quantization", "fp8"),
        ("dtype", "float16"),
        ("torchao_config", "int4wo-128"),
        ("enable_quant_communications", True),
        ("mamba_ssm_dtype", "bfloat16"),
        ("deepep_dispatcher_output_dtype", "fp8"),
        ("some_new_fp4_switch", True),
        ("attention_backend", "dual_chunk_flash_attn"),
        ("load_format", "dummy"),
        ("lora_paths", "a=/lora"),
    ],
)
def test_a_lossy_flag_is_told_with_its_value_and_the_reason(name: str, value: FlagValue) -> None:
    (line,) = lossy(SGLANG, {**EAGLE3, name: value})
    assert line.startswith(f"{name}: {value}: ")


def test_thresholds_say_that_greedy_text_is_safe() -> None:
    (line,) = lossy(SGLANG, {**EAGLE3, "speculative_accept_threshold_acc": 0.5})
    assert line.endswith("it shows above temperature 0 only")


def test_what_the_baseline_has_too_is_not_lossy() -> None:
    usual: dict[str, FlagValue] = {"kv_cache_dtype": "fp8_e5m2", "quantization": "fp8", "load_format": "dummy"}
    assert lossy(SGLANG, EAGLE3, usual) == []
    assert lossy(SGLANG, {**EAGLE3, "kv_cache_dtype": "auto"}, usual) == [
        "kv_cache_dtype: not set: numbers are kept or computed in another precision (the baseline: fp8_e5m2)"
    ]


def test_equal_types_by_other_names_are_equal() -> None:
    assert lossy(SGLANG, {**EAGLE3, "dtype": "half", "kv_cache_dtype": "bf16"}, {"dtype": "float16"}) == [
        "kv_cache_dtype: bf16: numbers are kept or computed in another precision (the baseline: not set)"
    ]


def test_variables_of_precision_are_lossy_and_those_of_communication_are_not() -> None:
    (line,) = lossy(SGLANG, EAGLE3, NVIDIA_TF32_OVERRIDE="1", NCCL_ALGO="Ring", SGLANG_ENABLE_SPEC_V2="1")
    assert line.startswith("NVIDIA_TF32_OVERRIDE: 1: ")
    assert "SGLANG_ENABLE_DP_GATHER_FP8: 1" in lossy(SGLANG, EAGLE3, SGLANG_ENABLE_DP_GATHER_FP8="1")[0]


@pytest.mark.parametrize("kind", TYPES)
def test_no_drafter_of_llamacpp_is_lossy(kind: str) -> None:
    assert lossy(LLAMACPP, {"spec_type": kind, "spec_draft_n_max": 8, "threads": 3, "flash_attn": "on"}) == []


def test_lossy_flags_of_llamacpp_are_told_under_one_name() -> None:
    assert lossy(LLAMACPP, {"ctk": "q8_0", "cache_type_v": "f16", "dry_multiplier": 0.8}) == [
        "cache_type_k: q8_0: the cache keeps numbers in another precision (the baseline: f16)",
        "dry_multiplier: 0.8: it changes how tokens are drawn (the baseline: not set)",
    ]
    assert lossy(LLAMACPP, {"spec_type": "ngram-simple"}, {"cache_type_k": "q8_0"}) == []


@given(config=configs, other=configs)
def test_any_two_configurations_give_readable_lines_and_a_baseline_none_against_itself(
    config: ServerConfig, other: ServerConfig
) -> None:
    for engine in (SGLANG, LLAMACPP):
        ours, theirs = (engine.canonical(one, HostFacts()) for one in (config, other))
        assert all(line.count(": ") >= 2 for line in engine.lossy(ours, theirs))
        base = engine.baseline(config, HostFacts())
        assert engine.lossy(base, base) == []


# What remembers.


def test_only_a_pool_that_no_flush_empties_is_said_to_remember() -> None:
    remembering = [kind for kind in TYPES if LLAMACPP.remembers(ServerConfig(flags={"spec_type": kind}))]
    assert remembering == ["ngram-mod"]
    assert LLAMACPP.remembers(ServerConfig(flags={"spec_type": "ngram-simple,ngram-mod"}))
    assert SGLANG.remembers(ServerConfig(flags={"speculative_algorithm": "NGRAM"})) == ""
    outside: dict[str, FlagValue] = {"enable_hierarchical_cache": True, "hicache_storage_backend": "file"}
    assert "file keeps prefixes" in SGLANG.remembers(ServerConfig(flags=outside))


# The environment that a server really runs with.


def test_only_the_variables_that_matter_are_asked_for() -> None:
    argv = environ_argv("SPECSWEEP_SERVER=n1", SGLANG.faked_by)
    mark, names = argv[-2:]
    assert mark == "SPECSWEEP_SERVER=n1"
    assert names.startswith(
        "^(SIMULATE_ACC_|SGLANG_SIMULATE_ACC_|SGL_SIMULATE_ACC_|SGLANG_SIMULATE_UNIFORM_EXPERTS|"
    )
    assert names.endswith("_EXPERTS)[A-Za-z0-9_]*=")


def test_of_several_processes_one_that_pretends_is_enough() -> None:
    found = parse_environ(b"SGLANG_SIMULATE_ACC_LEN=\nSGLANG_SIMULATE_ACC_LEN=3\nSGL_X=a=b\nnonsense\n=1\n")
    assert found == {"SGLANG_SIMULATE_ACC_LEN": "3", "SGL_X": "a=b"}
    assert SGLANG.faked(found)


@given(output=st.binary(max_size=300))
def test_anything_may_be_printed_there(output: bytes) -> None:
    SGLANG.faked(parse_environ(output))
