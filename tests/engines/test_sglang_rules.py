"""Every rule of SGLang, one by one: what breaks it, what next to it does not, and in which versions."""

from __future__ import annotations

import json

import pytest

from sweeper.engines.base import HostFacts
from sweeper.engines.sglang.rules import Rule
from sweeper.engines.sglang.spec import ALL_RULES, resolved_case, rule_violations
from sweeper.spec import ServerConfig
from tests.engines.sglang_backend_rows import BACKEND_ROWS
from tests.engines.sglang_cases import (
    BASE,
    CHAIN,
    EAGLE3,
    KIMI,
    KIMI_EAGLE3,
    TREE,
    host,
    with_flags,
)
from tests.engines.sglang_row import KIMI_TREE, MIDDLE, NEW, NGRAM, OLD, Row
from tests.engines.sglang_rows import SPECULATION_ROWS

ROWS = [*SPECULATION_ROWS, *BACKEND_ROWS]
IDS = [f"{row.rule}-{row.version}-{index}" for index, row in enumerate(ROWS)]
BY_NAME: dict[str, Rule] = {rule.__name__: rule for rule in ALL_RULES}


def facts_of(row: Row) -> HostFacts:
    """The row's host; of a target that cannot be read, and of a draft that is not there, as such."""
    facts = row.facts
    files = {**facts.files, "/gone/config.json": None}
    if not row.target:
        files["/model/config.json"] = "{"
    return HostFacts(facts.engine_version, facts.model_path, files=files, gpu_names=facts.gpu_names)


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_rule_is_broken_and_says_why(row: Row) -> None:
    line = BY_NAME[row.rule](resolved_case(row.config(), facts_of(row)))
    assert row.words in line
    assert line in rule_violations(row.config(), facts_of(row))


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.mended], ids=[i for i, r in zip(IDS, ROWS, strict=True) if r.mended]
)
def test_rule_is_kept_right_beside_that(row: Row) -> None:
    assert BY_NAME[row.rule](resolved_case(row.config(**row.mended), facts_of(row))) == ""


def test_every_rule_has_a_row() -> None:
    assert {row.rule for row in ROWS} == set(BY_NAME)
    assert len(BY_NAME) == len(ALL_RULES)


@pytest.mark.parametrize(
    "version", ["0.5.8", "0.5.9", OLD, "0.5.11", "0.5.12", "0.5.13", "0.5.14", MIDDLE, "0.5.20", NEW, "0.7.0"]
)
def test_chain_tree_and_baseline_are_legal_in_every_version(version: str) -> None:
    for flags in (BASE, CHAIN, TREE, NGRAM):
        assert rule_violations(ServerConfig(flags=flags), host(version)) == []


@pytest.mark.parametrize(
    ("version", "legal"), [(OLD, False), ("0.5.12", False), ("0.5.13", True), (MIDDLE, True), (NEW, True)]
)
def test_triton_pages_a_tree_from_0_5_13_on(version: str, legal: bool) -> None:
    config = with_flags(TREE, page_size=16)
    assert (rule_violations(config, host(version)) == []) is legal


@pytest.mark.parametrize("version", [OLD, "0.5.12", "0.5.13", MIDDLE, NEW])
def test_wrong_mask_is_forbidden_in_every_version(version: str) -> None:
    config = with_flags(KIMI_TREE, attention_backend="flashinfer")
    (line,) = rule_violations(config, host(version, KIMI, KIMI_EAGLE3))
    assert "causal mask" in line


def test_flag_that_the_hosts_help_does_not_list_is_refused() -> None:
    facts = host()
    known = HostFacts(facts.engine_version, facts.model_path, files=facts.files, known_flags=frozenset(CHAIN))
    assert rule_violations(with_flags(CHAIN, something_new=1), known) == [
        "something_new: is not a flag of this version of SGLang"
    ]
    assert rule_violations(with_flags(CHAIN), known) == []


def test_longer_context_may_be_forced() -> None:
    config = ServerConfig(
        flags=with_flags(CHAIN, context_length=4096).flags, env={"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
    )
    assert rule_violations(config, host(draft={**EAGLE3, "max_position_embeddings": 2048})) == []


def test_wrong_single_value_is_a_violation_too() -> None:
    assert "whole number" in rule_violations(with_flags(CHAIN, speculative_num_steps="x"), host())[0]
    fake = ServerConfig(flags=CHAIN, env={"SGLANG_SIMULATE_ACC_LEN": "3"})
    assert "pretend" in rule_violations(fake, host())[0]


def test_unreadable_target_is_told_and_never_raises() -> None:
    facts = HostFacts(MIDDLE, "/model", files={"/model/config.json": json.dumps([1])})
    assert "is not a JSON object" in rule_violations(with_flags(CHAIN), facts)[0]
