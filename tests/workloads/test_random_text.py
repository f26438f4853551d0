"""Random tokens are told from text, and no text from random tokens."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from sweeper.prompts.random_text import looks_random

TEXTS = Path(__file__).parents[1] / "data" / "texts"
ROOT = Path(__file__).parents[2]


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (TEXTS / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("row", rows("real.jsonl"), ids=lambda row: row["id"])
def test_a_text_that_somebody_wrote_is_not_random(row: dict[str, str]) -> None:
    assert not looks_random(row["text"])


def test_all_that_was_written_in_one_language_or_another_is_not_random_together() -> None:
    assert not looks_random(" ".join(row["text"] for row in rows("real.jsonl")))


def test_no_part_of_this_projects_own_files_is_random() -> None:
    names = ("sweeper/*.py", "launchers/*", "conf/**/*.yaml", "docs/*.md", "tests/config/*.py", "*.toml", "*.md")
    files = [path for name in names for path in ROOT.glob(name) if path.is_file()]
    texts = [path.read_text(encoding="utf-8") for path in files]
    parts = [text[start : start + 1000] for text in texts for start in range(0, len(text), 3000)]
    assert len(parts) > 200
    assert [part for part in parts if looks_random(part)] == []


def test_no_packaged_prompt_is_random() -> None:
    lines = [
        line for path in (ROOT / "conf" / "prompts").glob("*.jsonl") for line in path.read_text().splitlines()
    ]
    assert not any(looks_random(json.loads(line)["text"]) for line in lines)


def test_of_ten_random_texts_of_each_vocabulary_at_least_six_are_found() -> None:
    found = Counter(row["prompt_class"] for row in rows("random_tokens.jsonl") if looks_random(row["text"]))
    assert len(found) == 6
    assert min(found.values()) >= 6
    assert found.total() >= 50


def test_a_few_words_are_never_random() -> None:
    assert not any(looks_random(" ".join(row["text"].split()[:8])) for row in rows("random_tokens.jsonl"))


def test_base64_is_no_random_text() -> None:
    text = "Decode this: " + " ".join("aGVsbG8Zd29ybGQK" * 4 + str(number) for number in range(40))
    assert not looks_random(text)
