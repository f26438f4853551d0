"""vLLM's rules: what is refused, what is the same, what the command line says."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from sweeper.engines.base import HostFacts, Placement
from sweeper.engines.vllm import Vllm
from sweeper.spec import FlagValue, ServerConfig

ENGINE = Vllm()
EAGLE3: dict[str, FlagValue] = {"spec_method": "eagle3", "spec_model": "/models/draft", "spec_tokens": 3}
PLACEMENT = Placement(("vllm", "serve"), "/models/m", 31000, "nonce-7")


def config(**flags: FlagValue) -> ServerConfig:
    return ServerConfig(flags=flags)


def facts(*, draft: str = "", vocab: int = 4096, target: str = "LlamaForCausalLM", **more: Any) -> HostFacts:
    files = {
        "/models/m/config.json": json.dumps(
            {"architectures": [target], "vocab_size": 4096, "num_attention_heads": 12, "hidden_size": 512}
        ),
        "/models/draft/config.json": json.dumps({"architectures": [draft], "vocab_size": vocab})
        if draft
        else None,
    }
    return HostFacts(model_path="/models/m", files=files, **more)


def canonical(**flags: FlagValue) -> dict[str, FlagValue]:
    return dict(ENGINE.canonical(config(**flags), HostFacts()).flags)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"speculative_config": '{"method": "ngram"}'}, "give each of its entries a flag of its own: spec_method"),
        ({"method": "ngram"}, "method: is written spec_method here"),
        ({"num_speculative_tokens": 3}, "is written spec_tokens here"),
        ({"spec_method": "eagel3"}, "is eagle3 meant?"),
        ({"spec_tokns": 3}, "is spec_tokens meant?"),
        ({"spec_tokens": 0}, "0 must be from 1"),
        ({"spec_tokens": 2.5}, "must be a whole number"),
        ({"spec_prompt_lookup_max": "3"}, "must be a whole number"),
        ({"max_num_sequs": 4}, "is max_num_seqs meant?"),
        ({"enable_prefix_caching": False}, "write no_enable_prefix_caching: true"),
        ({"gpu_memory_utilization": 0}, "must lie between 0 and 1"),
        ({"api_key": "x"}, "requests carry no key"),
        ({"disable_log_stats": True}, "no counters"),
        ({"port": 8000}, "is set for every launch"),
        ({"spec_model": "~/draft"}, "absolute folder on the host"),
        ({"spec_rejection_sample_method": "typical"}, "block, standard, synthetic"),
    ],
)
def test_a_wrong_flag_gives_one_line_that_names_it(flags: dict[str, FlagValue], says: str) -> None:
    (line,) = ENGINE.flag_mistakes({name: (value,) for name, value in flags.items()})
    assert line.startswith(f"{next(iter(flags))}: ")
    assert says in line


@pytest.mark.parametrize(
    ("name", "value"),
    [("no_enforce_eager", True), ("a_new_flag", 3), ("spec_method", "wholly_new"), ("spec_xy_zz", 1)],
)
def test_what_no_table_knows_is_left_to_the_server(name: str, value: FlagValue) -> None:
    assert ENGINE.flag_mistakes({name: (value,)}) == []


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"spec_method": "eagle3", "spec_tokens": 3}, "spec_method eagle3 needs spec_model"),
        ({"spec_method": "draft_model", "spec_model": "/models/draft"}, "needs spec_tokens"),
        (
            {"spec_method": "ngram", "spec_tokens": 3, "spec_prompt_lookup_min": 5, "spec_prompt_lookup_max": 2},
            "spec_prompt_lookup_min=5 > spec_prompt_lookup_max=2",
        ),
        (
            {**EAGLE3, "tensor_parallel_size": 4, "spec_draft_tensor_parallel_size": 2},
            "must be 1 or tensor_parallel_size=4",
        ),
        ({**EAGLE3, "spec_rejection_sample_method": "synthetic"}, "needs spec_synthetic_acceptance_length"),
        ({"tensor_parallel_size": 5}, "must divide the model's 12 attention heads"),
        (
            {"spec_method": "ngram", "spec_tokens": 3, "async_scheduling": True},
            "async_scheduling is not to be had",
        ),
    ],
)
def test_a_combination_that_vllm_refuses_is_no_launch(flags: dict[str, FlagValue], says: str) -> None:
    (line,) = ENGINE.violations(config(**flags), facts())
    assert says in line


@pytest.mark.parametrize(
    "more", [{}, {"spec_draft_tensor_parallel_size": 1}, {"spec_draft_tensor_parallel_size": 4}]
)
def test_a_chain_of_eagle3_is_legal(more: dict[str, FlagValue]) -> None:
    asked = config(**EAGLE3, tensor_parallel_size=4, **more)
    assert ENGINE.violations(asked, facts(draft="LlamaForCausalLMEagle3")) == []


@pytest.mark.parametrize("method", ["eagle", "draft_model"])
def test_an_eagle3_draft_under_another_method_is_refused_before_the_launch(method: str) -> None:
    asked = config(**{**EAGLE3, "spec_method": method})
    (line,) = ENGINE.violations(asked, facts(draft="LlamaForCausalLMEagle3"))
    assert "use eagle3" in line
    assert ENGINE.violations(asked, facts(draft="LlamaForCausalLM")) == []


def test_a_draft_model_needs_the_targets_vocabulary() -> None:
    asked = config(spec_method="draft_model", spec_model="/models/draft", spec_tokens=3)
    (line,) = ENGINE.violations(asked, facts(draft="LlamaForCausalLM", vocab=1000))
    assert "1000 tokens" in line
    assert (
        ENGINE.violations(asked.with_flags({"spec_use_heterogeneous_vocab": True}), facts(draft="x", vocab=9))
        == []
    )


def test_more_gpus_than_the_host_has_are_refused() -> None:
    asked = config(tensor_parallel_size=4, pipeline_parallel_size=2)
    (line,) = ENGINE.violations(asked, facts(gpu_names=("H100",) * 4))
    assert "needs 8 GPUs" in line


def test_a_flag_that_the_hosts_help_does_not_list_is_refused_but_no_entry_of_the_json() -> None:
    known = ENGINE.known_flags("  --served-model-name X\n  --max-num-seqs N\n  --speculative-config X\n")
    assert ENGINE.known_flags("  --max-num-seqs N") == frozenset()
    asked = config(max_num_seqs=4, brand_new=1, spec_method="ngram", spec_tokens=2)
    assert ENGINE.violations(asked, HostFacts(known_flags=known)) == [
        "brand_new: is not a flag of this version of vLLM"
    ]


def test_equal_configurations_are_equal() -> None:
    plain = canonical(spec_method="ngram", spec_tokens=3)
    assert plain == {
        "spec_method": "ngram",
        "spec_tokens": 3,
        "spec_prompt_lookup_min": 5,
        "spec_prompt_lookup_max": 5,
    }
    assert canonical(spec_method="ngram", spec_tokens=3.0, spec_prompt_lookup_min=5, spec_model="/x") == plain
    assert canonical(spec_method="none", spec_tokens=3, spec_model="/x", tensor_parallel_size=1) == {}
    eagle = canonical(**EAGLE3, tensor_parallel_size=2)
    assert canonical(**EAGLE3, tensor_parallel_size=2, spec_draft_tensor_parallel_size=2) == eagle
    assert canonical(**EAGLE3, tensor_parallel_size=2, spec_draft_tensor_parallel_size=1) != eagle
    assert canonical(spec_method="deepseek_mtp", spec_tokens=1) == canonical(spec_method="mtp", spec_tokens=1)
    assert canonical(enforce_eager=True, cudagraph_capture_sizes="1 2") == {"enforce_eager": True}


def test_what_changes_nothing_is_told_with_the_reason() -> None:
    told = ENGINE.without_effect(
        config(spec_method="eagle3", spec_prompt_lookup_max=3, spec_tokens=2), HostFacts()
    )
    assert told == ["spec_prompt_lookup_max: eagle3 does not read it"]
    (line,) = ENGINE.without_effect(config(spec_method="wholly_new", spec_tokens=2), HostFacts())
    assert "nothing is known of its rules" in line


def test_the_command_line_has_one_json_for_all_of_speculation() -> None:
    flags: dict[str, FlagValue] = {
        **EAGLE3,
        "max_num_seqs": 4,
        "enforce_eager": True,
        "cudagraph_capture_sizes": "1 2",
    }
    spec = ENGINE.launch_spec(config(**flags), PLACEMENT)
    argv = list(spec.argv)
    assert argv[:9] == [
        *("vllm", "serve", "/models/m"),
        *("--served-model-name", "nonce-7", "--host", "127.0.0.1", "--port", "31000"),
    ]
    told = json.loads(argv[argv.index("--speculative-config") + 1])
    assert told == {"method": "eagle3", "model": "/models/draft", "num_speculative_tokens": 3}
    at = argv.index("--cudagraph-capture-sizes")
    assert argv[at : at + 3] == ["--cudagraph-capture-sizes", "1", "2"]
    assert not [word for word in argv if word.startswith("--spec-")]
    assert spec.env["VLLM_SERVER_DEV_MODE"] == "1"
    assert ENGINE.placed(spec.argv) == PLACEMENT


def test_the_baseline_has_no_speculative_config() -> None:
    baseline = ENGINE.baseline(config(**EAGLE3, max_num_seqs=4, spec_enforce_eager=True), HostFacts())
    assert baseline.flags == {"max_num_seqs": 4}
    assert "--speculative-config" not in ENGINE.launch_spec(baseline, PLACEMENT).argv


def test_the_simplest_comes_first() -> None:
    ngram = config(spec_method="ngram", spec_tokens=5)
    order = [config(), ngram, config(spec_method="mtp", spec_tokens=1), config(**EAGLE3)]
    set_aside = order[::-1]
    assert sorted(set_aside, key=ENGINE.simplicity) == order
    assert ENGINE.simplicity(config(**EAGLE3)) < ENGINE.simplicity(config(**{**EAGLE3, "spec_tokens": 4}))


@pytest.mark.parametrize(
    ("flags", "is_lossy"),
    [
        ({"spec_rejection_sample_method": "synthetic", "spec_synthetic_acceptance_length": 2.0}, True),
        ({"spec_rejection_sample_method": "block"}, False),
        ({"kv_cache_dtype": "fp8"}, True),
        ({"spec_kv_cache_dtype": "fp8"}, False),
        ({"spec_quantization": "fp8"}, False),
        ({"quantization": "fp8"}, True),
        ({"load_format": "dummy"}, True),
        ({"load_format": "safetensors"}, False),
        ({"attention_backend": "FLASHINFER", "enforce_eager": True, "tensor_parallel_size": 2}, False),
    ],
)
def test_what_may_write_other_text_is_labelled(flags: dict[str, FlagValue], is_lossy: bool) -> None:
    asked = ENGINE.canonical(config(**EAGLE3, **flags), HostFacts())
    lines = ENGINE.lossy(asked, ENGINE.baseline(config(), HostFacts()))
    assert bool(lines) == is_lossy, lines


def test_only_suffix_decoding_and_caches_elsewhere_remember() -> None:
    assert "suffix" in ENGINE.remembers(config(spec_method="suffix"))
    assert ENGINE.remembers(config(spec_method="suffix", spec_suffix_decoding_max_cached_requests=0)) == ""
    assert ENGINE.remembers(config(kv_offloading_size=8)).startswith("kv_offloading_size")
    assert ENGINE.remembers(config(spec_method="ngram", spec_tokens=3)) == ""


def test_drafts_that_are_never_made_or_never_kept_are_told() -> None:
    eagle, ngram = config(**EAGLE3), config(spec_method="ngram", spec_tokens=3)
    assert "not one token was drafted" in ENGINE.bypass(eagle, {"num_drafted_tokens": 0})
    assert "never kept" in ENGINE.bypass(eagle, {"num_verify_steps": 900, "accept_length": 1.01})
    assert ENGINE.bypass(eagle, {"num_verify_steps": 900, "accept_length": 1.8}) == ""
    assert ENGINE.bypass(ngram, {"num_drafted_tokens": 0}) == ""


def test_the_exported_file_has_speculation_as_a_mapping() -> None:
    serving = ENGINE.export(config(**EAGLE3, max_num_seqs=4), PLACEMENT, HostFacts(engine_version="0.32.0+cpu"))
    (file,) = ENGINE.own_formats(serving, (), 1.0, HostFacts()).files
    told = yaml.safe_load(file.text)
    assert told["model"] == "/models/m"
    assert told["speculative-config"]["num_speculative_tokens"] == 3
    assert told["max-num-seqs"] == "4"
    assert serving.image == "vllm/vllm-openai:v0.32.0"
    assert "VLLM_SERVER_DEV_MODE" not in serving.env


@pytest.mark.parametrize(
    ("flags", "model", "tokens"),
    [
        ({}, {"max_position_embeddings": 4096}, 4096),
        ({}, {"max_position_embeddings": 4096, "rope_scaling": None}, 4096),
        ({}, {"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default"}}, 4096),
        ({}, {"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, None),
        ({"max_model_len": 512}, {"max_position_embeddings": 4096}, 512),
        ({"max_model_len": "auto"}, {"max_position_embeddings": 4096}, None),
        ({}, {"text_config": {"max_position_embeddings": 8192}}, 8192),
        ({}, {}, None),
    ],
)
def test_how_long_a_request_may_be(flags: dict[str, FlagValue], model: Any, tokens: int | None) -> None:
    known = HostFacts(model_path="/models/m", files={"/models/m/config.json": json.dumps(model)})
    assert ENGINE.context_tokens(flags, known) == tokens
