"""Flags, rewrites and refusals, per version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gpu_host.folders import write_models
from tests.gpu_host.site.sglang.standin import failures, models, options, rules, settings

VERSIONS = ("0.5.8", "0.5.10.post1", "0.5.15.post1", "0.5.20", "0.5.23")
EAGLE3 = "--speculative-algorithm EAGLE3 --speculative-draft-model-path draft "


@pytest.fixture
def resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    write_models(tmp_path)

    def resolve(version: str, words: str, model: str = "kimi-k2.5", **env: str) -> dict[str, Any]:
        monkeypatch.setenv("STANDIN_VERSION", version)
        args = options.parse(["--model-path", str(tmp_path / model), *words.split()])
        rules.resolve(args, settings.version(), models.read(args["model_path"]), env)
        return args

    return resolve


def shape(args: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(args[f"speculative_{name}"] for name in ("num_steps", "eagle_topk", "num_draft_tokens"))


@pytest.mark.parametrize(
    ("asked", "imitated"),
    [("0.5.8", (0, 5, 8)), ("0.5.9", (0, 5, 8)), ("0.5.15", (0, 5, 15)), ("0.5.30", (0, 5, 23))],
)
def test_a_version_in_between_is_like_the_known_one_before(
    monkeypatch: pytest.MonkeyPatch, asked: str, imitated: tuple[int, ...]
) -> None:
    monkeypatch.setenv("STANDIN_VERSION", asked)
    assert settings.version() == imitated


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_flag_ends_with_2(resolved: Any, version: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        resolved(version, "--speculative-num-stepz 3")
    assert ended.value.code == 2
    assert "error: unrecognized arguments: --speculative-num-stepz 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "flag", "words"),
    [
        ("0.5.8", "--speculative-adaptive", "unrecognized arguments"),
        ("0.5.23", "--cuda-graph-max-bs 8", "ambiguous option"),
        ("0.5.10.post1", "--speculative-algorithm eagle3", "invalid choice"),
        ("0.5.15.post1", "--tp eight", "invalid int value"),
    ],
)
def test_each_version_has_its_own_flags(
    resolved: Any, version: str, flag: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        resolved(version, flag)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_new_versions_take_lower_case_and_old_aliases(resolved: Any) -> None:
    args = resolved("0.5.15.post1", "--speculative-algorithm nextn --cuda-graph-max-bs 8")
    assert args["speculative_algorithm"] == "EAGLE"
    assert args["cuda_graph_max_bs_decode"] == 8


@pytest.mark.parametrize("version", VERSIONS)
def test_a_chain_forces_its_draft_tokens_and_48_requests(
    resolved: Any, version: str, capfd: pytest.CaptureFixture[str]
) -> None:
    words = "--speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16"
    args = resolved(version, EAGLE3 + words)
    assert shape(args) == (5, 1, 6)
    assert args["max_running_requests"] == 48
    log = capfd.readouterr().err
    assert rules.ADJUSTED in log
    assert rules.RESET in log


def test_without_numbers_the_version_chooses(resolved: Any) -> None:
    assert shape(resolved("0.5.15.post1", EAGLE3)) == (3, 1, 4)
    assert shape(resolved("0.5.15.post1", EAGLE3, model="small-llama")) == (5, 4, 8)


def test_ngram_takes_its_breadth_for_topk(resolved: Any) -> None:
    assert shape(resolved("0.5.15.post1", "--speculative-algorithm NGRAM")) == (1, 10, 12)


def test_the_overlap_schedule_is_overwritten_by_the_old_ones_only(resolved: Any) -> None:
    assert resolved("0.5.10.post1", EAGLE3)["disable_overlap_schedule"] is True
    assert resolved("0.5.10.post1", EAGLE3, SGLANG_ENABLE_SPEC_V2="1")["disable_overlap_schedule"] is False
    assert resolved("0.5.15.post1", EAGLE3)["disable_overlap_schedule"] is False


@pytest.mark.parametrize(
    ("version", "words", "cause"),
    [
        ("0.5.15.post1", "--speculative-eagle-topk 2", "AssertionError"),
        ("0.5.15.post1", "--speculative-num-steps 3", "TypeError: '>' not supported"),
        ("0.5.10.post1", "--speculative-num-steps 3 --speculative-eagle-topk 2 --page-size 16", "is unstable"),
        (
            "0.5.15.post1",
            "--speculative-num-steps 3 --speculative-eagle-topk 2 --attention-backend trtllm_mla",
            "page_size > 1 is only supported",
        ),
        (
            "0.5.23",
            "--speculative-num-steps 3 --speculative-eagle-topk 2 --attention-backend trtllm_mha",
            "trtllm_mha backend only supports topk = 1",
        ),
        ("0.5.15.post1", "--pp-size 2", "Pipeline parallelism"),
        ("0.5.15.post1", "--context-length 999999", "User-specified context_length (999999)"),
        ("0.5.15.post1", "--speculative-algorithm EAGLE9", "Unknown speculative algorithm name: EAGLE9"),
    ],
)
def test_what_the_real_ones_refuse_is_refused_in_their_words(
    resolved: Any, version: str, words: str, cause: str
) -> None:
    with pytest.raises(failures.ServerError) as refused:
        resolved(version, EAGLE3 + words)
    assert cause in refused.value.traceback().splitlines()[-1]


def test_spec_v2_refuses_trees(resolved: Any) -> None:
    words = "--speculative-num-steps 3 --speculative-eagle-topk 2"
    with pytest.raises(failures.ServerError, match="Spec v2 currently only supports topk = 1"):
        resolved("0.5.10.post1", EAGLE3 + words, SGLANG_ENABLE_SPEC_V2="True")
