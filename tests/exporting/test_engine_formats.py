"""The engines' own formats: read back by their own rules, they give what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import HostFacts
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.registry import ENGINE_NAMES, engine_for
from sweeper.engines.serving import Loads, OwnFormat, OwnFormats, Placement
from sweeper.engines.sglang import SGLang
from sweeper.exporting.handover import serving_without_secrets
from sweeper.spec import FlagValue, ServerConfig
from tests.exporting.made import FACTS, configs, flags, handover, names, texts

CHAIN: dict[str, FlagValue] = {
    "speculative_algorithm": "EAGLE3",
    "speculative_eagle_topk": 1,
    "speculative_draft_model_path": "/d",
}
SHARED: dict[str, FlagValue] = {"tp_size": 8, "attention_backend": "triton"}


def chain(steps: int, **more: Any) -> ServerConfig:
    return flags(**SHARED, **CHAIN, speculative_num_steps=steps, speculative_num_draft_tokens=steps + 1, **more)


def formats(
    config: ServerConfig,
    *measured: Loads,
    noise_pct: float = 1.0,
    engine: str = "sglang",
    facts: HostFacts = FACTS,
    **more: Any,
) -> OwnFormats:
    serving = serving_without_secrets(handover(config, engine=engine, **more))
    return engine_for(engine).own_formats(serving, measured, noise_pct, facts)


def named(found: OwnFormats) -> dict[str, OwnFormat]:
    return {each.name: each for each in found.files}


def sglang_words(text: str) -> list[str]:
    """What SGLang makes of a file for --config: bare flags are true, lists become several words."""
    words: list[str] = []
    for key, value in yaml.safe_load(text).items():
        values = value if isinstance(value, list) else [] if value is True else [value]
        words += [f"--{key}", *map(str, values)]
    return words


@given(config=configs)
def test_sglang_reads_back_any_values_as_they_are(config: ServerConfig) -> None:
    (file,) = formats(config).files
    serving = handover(config).serving
    words = [word for group in serving.flags.values() for word in group]
    assert sglang_words(file.text) == [*serving.model, *words]


def test_lists_of_numbers_are_lists() -> None:
    (file,) = formats(flags(cuda_graph_bs="1 2 4", disable_cuda_graph_padding=True)).files
    assert yaml.safe_load(file.text)["cuda-graph-bs"] == ["1", "2", "4"]
    assert sglang_words(file.text)[2:] == ["--cuda-graph-bs", "1", "2", "4", "--disable-cuda-graph-padding"]


def test_the_rank_is_given_on_the_command_line() -> None:
    (file,) = formats(flags(tp_size=16), nodes=(2, "10.0.0.1:20000")).files
    words = sglang_words(file.text)
    assert words[-4:] == ["--nnodes", "2", "--dist-init-addr", "10.0.0.1:20000"]
    assert "--node-rank RANK (0 to 1)" in file.usage[0]


def loads(config: ServerConfig, **throughputs: float) -> Loads:
    return Loads(config, {int(name.removeprefix("at_")): value for name, value in throughputs.items()})


BASELINE = loads(flags(**SHARED), at_1=90, at_8=600, at_32=2000)
DEEP = loads(chain(5), at_1=150, at_8=640, at_32=1500)
FLAT = loads(chain(2), at_1=130, at_8=700, at_32=1900)
NEAR = loads(chain(4), at_1=149.5, at_8=650, at_32=1600)


def test_steps_follow_the_batch_size_where_the_best_ones_differ() -> None:
    found = named(formats(chain(5), DEEP, FLAT, NEAR, BASELINE))
    assert list(found) == ["sglang.yaml", "speculative-adaptive.json", "sglang-adaptive.yaml"]
    assert json.loads(found["speculative-adaptive.json"].text) == {
        "1": {"candidate_steps": [4, 5]},  # within the noise of one start
        "8": {"candidate_steps": [2]},
        "32": {"candidate_steps": [0]},  # without drafts
    }
    adaptive = yaml.safe_load(found["sglang-adaptive.yaml"].text)
    assert adaptive["speculative-adaptive"] is True
    assert adaptive["speculative-adaptive-config"] == "speculative-adaptive.json"
    assert (adaptive["speculative-num-steps"], adaptive["speculative-num-draft-tokens"]) == ("5", "6")
    assert not found["speculative-adaptive.json"].has_comments


def test_only_what_differs_in_the_number_of_steps_alone_counts() -> None:
    other = [
        loads(chain(1, disable_cuda_graph=True), at_1=1, at_8=9999),
        loads(chain(7).with_flags({"speculative_draft_model_path": "/other"}), at_1=1, at_8=9999),
        loads(flags(tp_size=4), at_1=1, at_8=9999),
    ]
    found = named(formats(chain(5), DEEP, FLAT, *other))
    steps = json.loads(found["speculative-adaptive.json"].text)
    assert [entry["candidate_steps"] for entry in steps.values()] == [[5], [2], [2]]


@pytest.mark.parametrize(
    ("served", "others", "facts", "told"),
    [
        (loads(chain(5), at_1=150), [loads(chain(2), at_1=130)], FACTS, None),
        (loads(chain(5), at_1=150, at_8=9), [loads(chain(2), at_1=130, at_8=8)], FACTS, "the best at each"),
        (loads(flags(**SHARED), at_1=150, at_8=9), [DEEP], FACTS, "adapts EAGLE and EAGLE3 only"),
        (
            loads(chain(5).with_flags({"speculative_eagle_topk": 4}), at_1=9, at_8=9),
            [DEEP],
            FACTS,
            "speculative_eagle_topk is 4",
        ),
        (loads(chain(5, enable_dp_attention=True), at_1=9, at_8=9), [DEEP], FACTS, "enable_dp_attention"),
        (DEEP, [FLAT], HostFacts(engine_version="0.5.10"), "no such thing"),
        (DEEP, [FLAT], HostFacts(known_flags=frozenset({"tp_size"})), "no such thing"),
    ],
)
def test_what_sglang_would_not_adapt_is_left_out_with_the_reason(
    served: Loads, others: list[Loads], facts: HostFacts, told: str | None
) -> None:
    found = formats(served.config, served, *others, facts=facts)
    assert list(named(found)) == ["sglang.yaml"]
    assert ([] if told is None else [told]) == [told for line in found.left_out if told and told in line]
    assert len(found.left_out) == (told is not None)


def ini_values(text: str) -> Mapping[str, str]:
    """llama.cpp's preset file, by its grammar: a value ends before ` ;`, ` #` or the end of the line."""
    values: dict[str, str] = {}
    for line in text.split("\n"):
        if line and not line.startswith((";", "#", "[")):
            name, _, value = line.partition("=")
            assert not {";", "#"} & set(value)
            values[name.strip(" \t")] = value.strip(" \t")
    assert values.pop("version") == "1"
    return values


@given(values=st.dictionaries(names, texts, max_size=3))
def test_llamacpp_reads_back_what_its_preset_file_can_hold(values: dict[str, str]) -> None:
    found = formats(ServerConfig(flags=values), engine="llamacpp", model="/m/a model.gguf")
    if found.left_out:
        assert any(text != text.strip(" \t") or {";", "#", "\n"} & set(text) for text in values.values())
        return
    text = found.files[0].text
    assert {name: v for name, v in ini_values(text).items() if name != "model"} == {
        name.replace("_", "-"): value for name, value in values.items()
    }


@given(config=configs, host=st.sampled_from(["127.0.0.1", "10.0.0.7"]), model=texts)
def test_the_command_line_of_a_launch_tells_what_it_was_given(config: ServerConfig, host: str, model: str) -> None:
    for name in ENGINE_NAMES:
        placement = Placement(("python3", "-m", "x"), model, 31000, "nonce-7", bind=host)
        engine = engine_for(name)
        assert engine.placed(engine.launch_spec(config, placement).argv) == placement


def test_so_does_that_of_a_server_over_several_hosts() -> None:
    placement = Placement(("sglang", "serve"), "/m", 31000, "n", num_nodes=3, node_address="10.0.0.1:20000")
    assert SGLang().placed(SGLang().launch_spec(flags(tp_size=24), placement).argv) == placement


@pytest.mark.parametrize("argv", [(), ("llama-server",), ("x", "--model", "m", "--port", "1")])
def test_another_command_line_is_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="no command line of a launch"):
        LlamaCpp().placed(argv)


@pytest.mark.parametrize(
    ("engine", "version", "image"),
    [
        ("sglang", "0.5.15.post1", "lmsysorg/sglang:v0.5.15.post1"),
        ("sglang", "0.5.24.dev3+g1234", "lmsysorg/sglang:latest"),
        ("llamacpp", "11434 (abcdef)", "ghcr.io/ggml-org/llama.cpp:server-b11434"),
        ("llamacpp", "xllamacpp 2026.10.11549 (abc)", "ghcr.io/ggml-org/llama.cpp:server"),
    ],
)
def test_the_image_is_that_of_the_measured_version(engine: str, version: str, image: str) -> None:
    placement = Placement(("x",), "/m", 1, "n")
    assert engine_for(engine).export(flags(), placement, HostFacts(engine_version=version)).image == image
