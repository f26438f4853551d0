"""Our rules against each SGLang's own argument handling, executed: what it refused and rewrote was saved.

`tests/sglang_oracle` asks a real SGLang; `tests/data/sglang/VERSION/arguments.json` holds its answers to 1,870
combinations. Rules that it cannot show, since they concern what happens after the arguments, are in BEYOND.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from sweeper.engines.base import HostFacts
from sweeper.engines.sglang import backend_rules, draft, host_rules, option_rules, rules
from sweeper.engines.sglang.rules import Rule
from sweeper.engines.sglang.spec import ALL_RULES, canonical_config, reported_flags, resolved_case, rule_violations
from sweeper.spec import FlagValue, ServerConfig
from tests.sglang_oracle.combination import Combination, fingerprint
from tests.sglang_oracle.combinations import combinations
from tests.sglang_oracle.models import FIELDS, MODELS, USUAL
from tests.sglang_oracle.store import plain

DATA = Path(__file__).parents[1] / "data" / "sglang"
VERSIONS = sorted(path.parent.name for path in DATA.glob("*/arguments.json"))
QUICK = ("0.5.10.post1", "0.5.15.post1", "0.5.23")
EACH_VERSION = [
    pytest.param(version, marks=[] if version in QUICK else [pytest.mark.slow], id=version) for version in VERSIONS
]

GPU_NAMES = {
    "sm80": "NVIDIA A100-SXM4-80GB",
    "sm90": "NVIDIA H200",
    "sm100": "NVIDIA B200",
    "sm120": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
}
FILES = {f"/{name}/config.json": json.dumps(config) for name, config in MODELS.items()}

BEYOND: dict[Rule, tuple[str, ...]] = {
    # What the arguments alone do not show: it fails, or is wrong, later on. Rule to words that its line may have.
    rules.numbers_are_complete: ("draft_tokens is missing",),  # E3
    rules.tree_is_large_enough: ("has use for",),
    rules.depth_is_used: ("steps need",),
    rules.draft_is_named: ("is missing",),
    rules.own_draft_layer_exists: ("no draft layer",),
    rules.spec_v2_is_a_chain: ("only topk 1",),  # E12, when SGLang chooses topk itself
    option_rules.rejection_sampling: ("vocabulary",),  # E20
    backend_rules.draft_backend_is_a_chain: ("drafts with topk 1 only",),
    backend_rules.tree_is_verified_as_a_tree: ("causal mask",),
    backend_rules.draft_backend_exists: ("cannot draft",),
    backend_rules.draft_backend_fits_the_draft: ("the draft is",),
    backend_rules.backend_fits_the_target: ("the target is",),
    backend_rules.no_speculation_there: ("hpc_ops",),
    backend_rules.tree_backend_is_pinned: ("attention_backend is missing",),
    host_rules.gpu_can: ("fa3", "flashmla", "cutlass_mla"),
    draft.algorithm_fits_the_draft: ("EAGLE3",),
    draft.draft_is_one_layer: ("layers",),
}


@dataclass(frozen=True)
class Answer:
    """One combination, what SGLang made of it, and what we do."""

    asked: Combination
    config: ServerConfig
    facts: HostFacts
    outcome: str | dict[str, Any]

    @property
    def refused(self) -> str:
        """SGLang's words; empty when it accepted."""
        return self.outcome if isinstance(self.outcome, str) else ""

    @cached_property
    def violations(self) -> list[str]:
        """Ours."""
        return rule_violations(self.config, self.facts)

    @cached_property
    def canonical(self) -> ServerConfig:
        """Ours."""
        return canonical_config(self.config, self.facts)

    @property
    def resolved(self) -> dict[str, Any]:
        """SGLang's resolution of the fields that are compared; None for what is not set."""
        assert isinstance(self.outcome, dict)
        found = {**USUAL, **plain(self.asked.flags), **self.outcome}
        return {name: found.get(name) for name in FIELDS}


@cache
def answers(version: str) -> tuple[Answer, ...]:
    stored = json.loads((DATA / version / "arguments.json").read_text())
    asked = combinations()
    assert stored["combinations"] == fingerprint(asked), "the combinations changed: ask the real ones again"
    return tuple(
        Answer(
            asked=one,
            config=ServerConfig(flags=plain(one.flags), env=one.env),
            facts=HostFacts(
                engine_version=stored["version"],
                model_path=f"/{one.model}",
                files=FILES,
                known_flags=frozenset(stored["known_flags"]),
                gpu_names=(GPU_NAMES[one.gpu],) * 8,
            ),
            outcome=stored["distinct"][index],
        )
        for one, index in zip(asked, stored["outcomes"], strict=True)
    )


def accepted_keys(version: str) -> set[str]:
    """The canonical forms of everything that this version accepts, by GPU and model."""
    return {key(answer) for answer in answers(version) if not answer.refused}


def key(answer: Answer) -> str:
    return f"{answer.asked.gpu} {answer.asked.model} {answer.canonical.key()}"


def broken(answer: Answer) -> tuple[tuple[Rule, str], ...]:
    """The rules that the combination breaks, and their lines."""
    case = resolved_case(answer.config, answer.facts)
    return tuple((rule, line) for rule in ALL_RULES if (line := rule(case)))


def test_saved_versions_cover_the_range() -> None:
    assert len(VERSIONS) >= 16
    assert {"0.5.8", *QUICK} <= set(VERSIONS)


@pytest.mark.parametrize("version", EACH_VERSION)
def test_whatever_sglang_refuses_is_foreseen(version: str) -> None:
    """A refused combination is a violation, or its canonical form leaves out what is refused and is accepted."""
    accepted = accepted_keys(version)
    missed = [
        (answer.refused[:100], dict(answer.asked.flags), dict(answer.asked.env))
        for answer in answers(version)
        if answer.refused and not answer.violations and key(answer) not in accepted
    ]
    assert missed == []


@pytest.mark.parametrize("version", EACH_VERSION)
def test_whatever_sglang_rewrites_is_foreseen(version: str) -> None:
    wrong = [
        (name, theirs, ours, dict(answer.asked.flags), dict(answer.asked.env))
        for answer in answers(version)
        if is_launched_alike(answer)
        for name, theirs, ours in differences(answer)
    ]
    assert wrong == []


def is_launched_alike(answer: Answer) -> bool:
    """Whether SGLang and we both accept it, and mean the same by it.

    One exception: where they choose a tree by themselves, 0.5.11 and 0.5.12 leave the second worker on, which runs
    chains only. Our canonical form writes the tree out, and then they take the first worker.
    """
    if answer.refused or answer.violations:
        return False
    chosen = "speculative_eagle_topk" not in answer.asked.flags and answer.asked.flags.get("speculative_algorithm")
    is_tree = (answer.resolved["speculative_eagle_topk"] or 1) > 1 and chosen != "NGRAM"
    return not (chosen and is_tree and answer.facts.engine_version in ("0.5.11", "0.5.12"))


def differences(answer: Answer) -> Iterator[tuple[str, object, object]]:
    """The fields in which SGLang's resolution is not what we foresee."""
    theirs = answer.resolved
    ours: dict[str, FlagValue] = {**USUAL, **reported_flags(answer.config, answer.facts)}
    pinned = "attention_backend" in answer.asked.flags
    for name in FIELDS:
        left_away = name not in ours and name in answer.asked.flags
        if name in ("chunked_prefill_size", "schedule_conservativeness") and name not in answer.asked.flags:
            continue  # its default depends on the GPU's memory and on data-parallel groups
        if left_away or (not pinned and name in ("attention_backend", "page_size")):
            continue  # dropped as without effect; or a default that the sweep never leaves to SGLang
        if name == "speculative_draft_attention_backend" and name not in ours:
            continue  # DFLASH reports the one that it falls back to
        expected = theirs[name]
        if name.endswith("fill_attention_backend") or name == "decode_attention_backend":
            # Two equal halves are no split: SGLang still reports them.
            expected = expected if ours.get(name) or expected != ours.get("attention_backend") else None
        if expected != ours.get(name):
            yield name, expected, ours.get(name)


@pytest.mark.parametrize("version", EACH_VERSION)
def test_what_is_left_away_changes_nothing(version: str) -> None:
    """Combinations with one canonical form are resolved by SGLang to the same thing, in all that we keep."""
    found: dict[str, dict[str, Any]] = {}
    for answer in answers(version):
        if not is_launched_alike(answer):
            continue
        kept = answer.canonical.flags
        values = {name: value for name, value in answer.resolved.items() if name in kept}
        assert found.setdefault(key(answer), values) == values, dict(answer.asked.flags)


@pytest.mark.parametrize("version", EACH_VERSION)
def test_only_known_hazards_are_forbidden_beyond_sglangs_own_checks(version: str) -> None:
    unexplained = Counter(
        (rule.__name__, line)
        for answer in answers(version)
        if not answer.refused
        for rule, line in broken(answer)
        if not any(word in line for word in BEYOND.get(rule, ()))
    )
    assert unexplained == {}


def test_every_rule_that_says_it_was_run_decides_some_refusal_alone() -> None:
    """So that each can fail: without it, a refused combination would be called legal."""
    run = {
        rule
        for group in (rules.RULES, option_rules.OPTION_RULES, backend_rules.BACKEND_RULES)
        for rule in (*group, *host_rules.HOST_RULES)
        if "run" in (rule.__doc__ or "").lower().replace("runs", "").replace("runner", "")
    }
    alone = set()
    for version in QUICK:
        for answer in answers(version):
            if answer.refused and len(fired := broken(answer)) == 1:
                alone.add(fired[0][0])
    assert {rule.__name__ for rule in run - alone} == set()
