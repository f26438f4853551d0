"""llama.cpp's flags: what is a mistake, what is the same, what does nothing."""

from __future__ import annotations

import pytest

from sweeper.engines.base import HostFacts
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.spec import FlagValue, ServerConfig

ENGINE = LlamaCpp()


def config(**flags: FlagValue) -> ServerConfig:
    return ServerConfig(flags=flags)


def mistakes(name: str, *values: FlagValue) -> list[str]:
    return ENGINE.flag_mistakes({name: values})


def same(first: ServerConfig, second: ServerConfig) -> bool:
    return ENGINE.canonical(first, HostFacts()).key() == ENGINE.canonical(second, HostFacts()).key()


# Mistakes.


def test_unknown_speculative_type_is_named_with_the_valid_ones() -> None:
    (line,) = mistakes("spec_type", "ngram-simple", "ngram-simple,eagle")
    assert line.startswith("spec_type: 'eagle' ")
    assert "none, ngram-simple" in line
    assert "draft-eagle3" in line


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("draft_max", "spec_draft_n_max"),
        ("draft", "spec_draft_n_max"),
        ("draft_min", "spec_draft_n_min"),
        ("spec_ngram_size_n", "spec_ngram_simple_size_n"),
        ("spec_ngram_size_m", "spec_ngram_simple_size_m"),
        ("spec_ngram_min_hits", "spec_ngram_map_k4v_min_hits"),
        ("md", "spec_draft_model"),
        ("c", "ctx_size"),
    ],
)
def test_removed_or_other_spelling_names_the_flag_to_use(old: str, new: str) -> None:
    (line,) = mistakes(old, 4)
    assert line.startswith(f"{old}: ")
    assert new in line


@pytest.mark.parametrize("name", ["model", "alias", "host", "port", "metrics"])
def test_flag_that_the_launch_sets_cannot_be_configured(name: str) -> None:
    assert "cannot be configured" in mistakes(name, "x")[0]


def test_flag_written_with_hyphens_is_refused() -> None:
    assert "write --spec-type as spec_type" in mistakes("spec-type", "none")[0]


@pytest.mark.parametrize("value", [0, 1025, -1])
@pytest.mark.parametrize(
    "name", ["spec_ngram_simple_size_n", "spec_ngram_map_k4v_size_m", "spec_ngram_mod_n_match"]
)
def test_size_outside_1_to_1024_is_refused(name: str, value: int) -> None:
    assert mistakes(name, value) == [f"{name}: {value} must be from 1 to 1024: the server refuses it"]


@pytest.mark.parametrize("name", ["spec_ngram_simple_size_n", "spec_ngram_simple_size_m", "spec_ngram_mod_n_max"])
def test_sizes_1_and_1024_are_legal(name: str) -> None:
    assert mistakes(name, 1, 1024) == []


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_p_min_outside_0_to_1_is_refused(value: float) -> None:
    assert mistakes("spec_draft_p_min", value)[0].startswith(f"spec_draft_p_min: {value} must be from 0 to 1")


@pytest.mark.parametrize("value", ["3", True, 2.5])
def test_count_that_is_not_a_whole_number_is_refused(value: FlagValue) -> None:
    assert mistakes("spec_draft_n_max", value) == [f"spec_draft_n_max: {value!r} must be a whole number"]


def test_draft_of_no_tokens_is_refused_because_the_server_aborts() -> None:
    assert "aborts on its first request" in mistakes("spec_draft_n_max", 0)[0]


def test_every_wrong_value_gets_its_line() -> None:
    assert len(ENGINE.flag_mistakes({"spec_type": ("a", "b"), "threads": (1, -2), "n_gpu_layers": (99,)})) == 3


def test_flags_of_a_native_server_that_are_not_known_here_pass() -> None:
    assert mistakes("n_gpu_layers", 99) == []
    assert mistakes("cache_type_k", "q8_0") == []


# Canonical.


@pytest.mark.parametrize(
    "flags",
    [
        {"spec_type": "none"},
        {"spec_type": "ngram-simple,none"},
        {"spec_draft_model": "/models/draft.gguf"},
        {"spec_draft_n_max": 5, "spec_ngram_simple_size_n": 4},
        {"spec_type": False},
    ],
)
def test_no_speculation_is_one_configuration(flags: dict[str, FlagValue]) -> None:
    assert same(config(threads=1, **flags), config(threads=1))
    assert not ENGINE.is_speculative(config(**flags))


@pytest.mark.parametrize(
    ("spec_type", "useless"),
    [
        ("ngram-simple", {"spec_ngram_simple_min_hits": 5}),
        ("ngram-simple", {"spec_ngram_map_k_size_n": 5}),
        ("ngram-simple", {"spec_draft_n_max": 5, "spec_draft_p_min": 0.5}),
        ("ngram-simple", {"spec_draft_model": "/models/draft.gguf"}),
        ("ngram-map-k", {"spec_ngram_map_k_min_hits": 5}),
        ("ngram-cache", {"spec_ngram_simple_size_m": 5}),
        ("draft-mtp", {"spec_draft_p_split": 0.5}),
        ("draft-mtp", {"spec_ngram_mod_n_max": 5}),
    ],
)
def test_flag_without_effect_under_its_type_is_dropped(spec_type: str, useless: dict[str, FlagValue]) -> None:
    assert same(config(spec_type=spec_type, **useless), config(spec_type=spec_type))


@pytest.mark.parametrize(
    ("spec_type", "effective"),
    [
        ("ngram-simple", {"spec_ngram_simple_size_m": 47}),
        ("ngram-map-k4v", {"spec_ngram_map_k4v_min_hits": 2}),
        ("ngram-mod", {"spec_ngram_mod_n_match": 20}),
        ("draft-simple", {"spec_draft_p_min": 0.5}),
        ("draft-simple", {"spec_draft_model": "/models/draft.gguf"}),
        ("draft-simple", {"spec_draft_ngl": 99}),
        ("draft-simple,ngram-simple", {"spec_draft_n_min": 1}),
        ("ngram-simple", {"batch_size": 64}),
    ],
)
def test_flag_with_effect_makes_another_configuration(spec_type: str, effective: dict[str, FlagValue]) -> None:
    assert not same(config(spec_type=spec_type, **effective), config(spec_type=spec_type))


@pytest.mark.parametrize(
    ("spec_type", "defaults"),
    [
        ("ngram-simple", {"spec_ngram_simple_size_n": 12, "spec_ngram_simple_size_m": 48}),
        ("ngram-map-k4v", {"spec_ngram_map_k4v_min_hits": 1}),
        ("ngram-mod", {"spec_ngram_mod_n_match": 24, "spec_ngram_mod_n_min": 48, "spec_ngram_mod_n_max": 64}),
        ("draft-mtp", {"spec_draft_n_max": 3, "spec_draft_n_min": 0, "spec_draft_p_min": 0}),
    ],
)
def test_default_written_out_is_the_default(spec_type: str, defaults: dict[str, FlagValue]) -> None:
    assert same(config(spec_type=spec_type, **defaults), config(spec_type=spec_type))


def test_order_and_repetition_in_a_list_of_types_do_not_matter() -> None:
    listed = ENGINE.canonical(config(spec_type="draft-mtp, ngram-mod,ngram-simple,ngram-mod"), HostFacts())
    assert listed.flags["spec_type"] == "ngram-simple,ngram-mod,draft-mtp"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"spec_type": "draft-mtp", "spec_draft_p_min": 0}, {"spec_type": "draft-mtp", "spec_draft_p_min": -0.0}),
        ({"ctx_size": 2048}, {"ctx_size": 2048.0}),
        ({"no_mmap": False}, {}),
    ],
)
def test_equal_values_are_equal_configurations(first: dict[str, FlagValue], second: dict[str, FlagValue]) -> None:
    assert same(config(**first), config(**second))


def test_environment_is_kept() -> None:
    assert ENGINE.canonical(ServerConfig(env={"OMP_NUM_THREADS": "1"}), HostFacts()).env == {
        "OMP_NUM_THREADS": "1"
    }
