"""The rules agree with vLLM itself: what 0.32.0 made of these settings (tests/real_vllm/oracle.py asked it)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sweeper.engines.base import HostFacts
from sweeper.engines.vllm import Vllm
from sweeper.engines.vllm.table import ENTRIES, KNOWN_ENTRIES
from sweeper.spec import FlagValue, ServerConfig
from tests.vllm import saved

ENGINE = Vllm()
ROWS: list[dict[str, Any]] = json.loads((saved.SAVED / "arguments.json").read_text())
OWN_NAMES = {entry: flag for flag, entry in ENTRIES.items()}
LLAMA = {"architectures": ["LlamaForCausalLM"], "num_attention_heads": 8}
CONFIGS = {
    "/models/target": {**LLAMA, "vocab_size": 49152},
    "/models/draft": {**LLAMA, "vocab_size": 49152},
    "/models/tiny-eagle3/target": {**LLAMA, "vocab_size": 4096},
    "/models/tiny-eagle3/draft-eagle3": {"architectures": ["LlamaForCausalLMEagle3"], "vocab_size": 4096},
}
LEFT_TO_VLLM = ("Arctic Inference is", "SpeculativeConfig method Input", "Unsupported speculative method")
"""Refused for what no rule knows: a package of the host, another version's method, heads in a checkpoint."""
JUDGED = [row for row in ROWS if not any(reason in row.get("refused", "") for reason in LEFT_TO_VLLM)]


def flags_of(row: dict[str, Any]) -> dict[str, FlagValue]:
    return {OWN_NAMES.get(entry, f"spec_{entry}"): value for entry, value in row["entries"].items()}


def facts_of(row: dict[str, Any]) -> HostFacts:
    files = {f"{path}/config.json": json.dumps(config) for path, config in CONFIGS.items()}
    return HostFacts(model_path=row["model"], files=files, known_flags=KNOWN_ENTRIES)


@pytest.mark.parametrize("row", JUDGED, ids=lambda row: json.dumps(row["entries"])[:80])
def test_what_vllm_refuses_or_turns_into_something_else_is_no_launch(row: dict[str, Any]) -> None:
    refused = row.get("refused", "")
    told = ENGINE.violations(ServerConfig(flags=flags_of(row)), facts_of(row))
    is_another = not refused and row["resolved"]["method"] != row["entries"]["method"]
    assert bool(told) == (bool(refused) or is_another), told


@pytest.mark.parametrize("row", [row for row in ROWS if row.get("resolved", {}).get("prompt_lookup_max")])
def test_looked_up_lengths_are_filled_in_as_vllm_does(row: dict[str, Any]) -> None:
    flags = ENGINE.canonical(ServerConfig(flags=flags_of(row)), HostFacts()).flags
    for entry in ("prompt_lookup_min", "prompt_lookup_max"):
        assert flags[f"spec_{entry}"] == row["resolved"][entry]


@pytest.mark.parametrize("row", [row for row in ROWS if "refused" in row], ids=lambda row: row["refused"][:60])
def test_each_refusal_is_told_from_the_log(row: dict[str, Any]) -> None:
    kind, _, words = row["refused"].partition(": ")
    lines = words.replace(" Value error, ", "\n  Value error, ").replace(" [type=", "\n  [type=")
    found = ENGINE.diagnose(f"Traceback (most recent call last):\npydantic_core.{kind}: {lines}\n", 1)
    assert found is not None
    assert found.kind.value == "unsupported"
