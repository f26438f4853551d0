"""The real SGLang on a CPU says now what it said when it was captured, and its speculation changes no word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real_sglang import said
from tests.real_sglang.capture import WHOLE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

Folder = Callable[[str], Path]
STARTED = ("baseline", "ngram_tree", "eagle3_tree")


@pytest.mark.parametrize("case", STARTED)
def test_its_answers_have_the_keys_of_the_saved_ones(case: str, now: Folder, saved: Folder) -> None:
    for name in ("generate.json", "model_info.json", "server_info.json", "v1_loads.json"):
        assert said.keys(now(case), name) == said.keys(saved(case), name), name


@pytest.mark.parametrize("case", STARTED)
def test_its_log_passes_the_saved_milestones(case: str, now: Folder, saved: Folder) -> None:
    assert said.milestones(now(case)) == said.milestones(saved(case))


@pytest.mark.parametrize("case", WHOLE)
def test_its_metrics_have_the_saved_names(case: str, now: Folder, saved: Folder) -> None:
    assert said.metrics(now(case)) == said.metrics(saved(case))


@pytest.mark.parametrize("case", STARTED)
def test_its_processes_bear_the_saved_titles_and_share_a_session(case: str, now: Folder, saved: Folder) -> None:
    processes = json.loads((now(case) / "facts.json").read_text())["processes"]

    assert said.titles(now(case)) == said.titles(saved(case))
    assert len({each["session"] for each in processes}) == 1


@pytest.mark.parametrize("case", STARTED)
def test_sigterm_ends_all_of_it_with_exit_code_0(case: str, now: Folder) -> None:
    facts = json.loads((now(case) / "facts.json").read_text())

    assert facts["stop"][-1] == "exit code 0"
    assert len(facts["stop"]) == len(facts["processes"]) + 1


@pytest.mark.parametrize(("case", "without"), [("ngram_tree", "baseline"), ("eagle3_tree", "tiny_baseline")])
def test_speculation_is_accepted_and_changes_no_word(case: str, without: str, now: Folder, saved: Folder) -> None:
    speculated = said.answer(now(case))

    assert speculated["text"] == said.answer(saved(without))["text"]
    assert speculated["meta_info"]["spec_accept_length"] > 1.5


@pytest.mark.parametrize("case", STARTED)
def test_a_streamed_answer_ends_with_what_it_would_have_been_in_one_piece(case: str, now: Folder) -> None:
    last = said.chunks(now(case))[-1]

    assert last["text"] == said.answer(now(case))["text"]
    assert last["meta_info"].keys() >= said.answer(now(case))["meta_info"].keys() - {"decode_throughput"}
