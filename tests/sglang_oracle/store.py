"""Puts the answers of the probe into tests/data/sglang/VERSION/arguments.json, each distinct outcome once.

python -m tests.sglang_oracle.store ANSWERS-OF-EACH-GPU.json...
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.sglang_oracle.combination import Combination, FlagValue, fingerprint
from tests.sglang_oracle.combinations import combinations
from tests.sglang_oracle.models import FIELDS, USUAL

DATA = Path(__file__).parents[1] / "data" / "sglang"


def main(names: list[str]) -> None:
    """One file per call: all answers are of one version, and together they are complete."""
    answers = [json.loads(Path(name).read_text()) for name in names]
    asked = combinations()
    by_gpu = {answer["gpu"]: iter(answer["outcomes"]) for answer in answers}
    outcomes = [compact(one, next(by_gpu[one.gpu])) for one in asked]
    distinct = list(dict.fromkeys(outcomes))
    version = answers[0]["version"]
    stored = {
        "version": version,
        "combinations": fingerprint(asked),
        "played": sorted({name for answer in answers for name in answer["played"]}),
        "known_flags": sorted(flags_of(asked) & set(answers[0]["flags"])),
        "distinct": [json.loads(text) for text in distinct],
        "outcomes": [distinct.index(text) for text in outcomes],
    }
    folder = DATA / version
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "arguments.json").write_text(json.dumps(stored, separators=(",", ":")) + "\n")


def compact(asked: Combination, outcome: dict[str, Any]) -> str:
    """A refusal as text; of a resolution what is other than asked for or, not asked for, other than usual."""
    if "refused" in outcome:
        return json.dumps(outcome["refused"])
    expected = {**USUAL, **plain(asked.flags)}
    resolved = {name: None if (value := outcome["resolved"].get(name)) is False else value for name in FIELDS}
    return json.dumps({name: value for name, value in resolved.items() if value != expected.get(name)})


def plain(flags: Mapping[str, FlagValue]) -> dict[str, FlagValue]:
    """The flags with the models' folders as the probe reports them."""
    return {name: _plain(value) for name, value in flags.items()}


def _plain(value: FlagValue) -> FlagValue:
    return value.replace("{", "/").replace("}", "") if isinstance(value, str) else value


def flags_of(asked: tuple[Combination, ...]) -> set[str]:
    """The flags that the combinations use, and those that our own rewriting may add."""
    return {name for one in asked for name in one.flags} | {"speculative_use_rejection_sampling"}


if __name__ == "__main__":
    main(sys.argv[1:])
