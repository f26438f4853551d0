"""llama.cpp's combinations that are refused, which configuration is simpler, and the command line."""

from __future__ import annotations

import pytest

from sweeper.engines.base import HostFacts, Placement
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.spec import FlagValue, ServerConfig

ENGINE = LlamaCpp()
DRAFT = {"spec_type": "draft-simple", "spec_draft_model": "/models/draft.gguf"}


def config(**flags: FlagValue) -> ServerConfig:
    return ServerConfig(flags=flags)


def violations(**flags: FlagValue) -> list[str]:
    return ENGINE.violations(config(**flags), HostFacts())


# Violations.


@pytest.mark.parametrize("kind", ["draft-simple", "draft-eagle3", "draft-dflash", "draft-dspark"])
def test_draft_type_without_a_draft_model_is_refused(kind: str) -> None:
    assert "needs spec_draft_model" in violations(spec_type=kind)[0]


def test_own_heads_need_no_draft_model() -> None:
    assert violations(spec_type="draft-mtp") == []


def test_shortest_draft_above_the_longest_is_refused() -> None:
    assert "spec_draft_n_min=4 > spec_draft_n_max=3" in violations(**DRAFT, spec_draft_n_min=4)[0]
    assert violations(**DRAFT, spec_draft_n_min=3) == []


def test_ngram_simple_that_drafts_less_than_it_looks_up_is_refused() -> None:
    sizes = {"spec_ngram_simple_size_n": 4, "spec_ngram_simple_size_m": 3}
    assert "thrown away" in violations(spec_type="ngram-simple", **sizes)[0]
    assert violations(spec_type="ngram-simple", spec_ngram_simple_size_n=4, spec_ngram_simple_size_m=4) == []


def test_default_counts_in_a_combination_too() -> None:
    assert violations(spec_type="ngram-simple", spec_ngram_simple_size_m=11)
    assert violations(spec_type="ngram-simple", spec_ngram_simple_size_m=12) == []


@pytest.mark.parametrize("kind", ["map_k", "map_k4v"])
def test_other_ngram_kinds_may_draft_less_than_they_look_up(kind: str) -> None:
    flags: dict[str, FlagValue] = {f"spec_ngram_{kind}_size_n": 4, f"spec_ngram_{kind}_size_m": 3}
    assert violations(spec_type=f"ngram-{kind.replace('_', '-')}", **flags) == []


def test_value_that_alone_is_wrong_is_a_violation_too() -> None:
    assert violations(**DRAFT, spec_draft_n_max=0)
    assert violations(**DRAFT, spec_draft_p_min=1.5)
    assert violations(spec_type="nonsense")


def test_draft_model_without_a_type_is_legal_since_it_is_the_baseline() -> None:
    assert violations(spec_draft_model="/models/draft.gguf") == []


@pytest.mark.parametrize("name", ["embedding", "embeddings"])
def test_embeddings_and_a_draft_model_do_not_start(name: str) -> None:
    asked: dict[str, FlagValue] = {**DRAFT, name: True}
    (line,) = violations(**asked)
    assert line.startswith("embeddings with spec_type draft-")
    asked[name] = False
    assert violations(**asked) == []
    assert violations(spec_type="ngram-cache", **{name: True}) == []


def test_a_flag_that_never_was_is_named_as_it_is() -> None:
    (line,) = ENGINE.flag_mistakes({"draft_model": ("/models/draft.gguf",)})
    assert line.endswith("use spec_draft_model")


# Simplicity and command line.


def test_simpler_means_less_machinery_then_shorter_drafts() -> None:
    ordered = [
        config(ctx_size=2048),
        config(spec_type="ngram-simple", spec_ngram_simple_size_n=3, spec_ngram_simple_size_m=4),
        config(spec_type="ngram-cache"),
        config(spec_type="ngram-simple", spec_ngram_simple_size_n=3, spec_ngram_simple_size_m=16),
        config(**DRAFT),
        config(spec_type="ngram-cache,ngram-simple"),
    ]
    keys = [ENGINE.simplicity(one) for one in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_command_line_of_a_configuration() -> None:
    wanted = config(
        spec_type="ngram-simple", spec_ngram_simple_size_n=3, flash_attn="on", no_mmap=True, jinja=False
    )
    spec = ENGINE.launch_spec(wanted, Placement(("llama-server",), "/m.gguf", 31000, "n0nce"))
    assert " ".join(spec.argv) == (
        "llama-server --model /m.gguf --alias n0nce --host 127.0.0.1 --port 31000 --metrics"
        " --spec-type ngram-simple --spec-ngram-simple-size-n 3 --flash-attn on --no-mmap"
    )
    assert "LLAMA_API_KEY" in spec.unset_env
