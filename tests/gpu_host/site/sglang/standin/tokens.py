"""A made-up vocabulary: text to token ids and back, and the answer to a prompt. Always the same."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Sequence

_WORDS = (
    "the a of to and in is for that with as on by this from it at are be which an or has one can more if when "
    "server token draft model step tree time memory graph host trial value night first second answer question"
)
WORDS = tuple(_WORDS.split())
FIRST_ID = 1000
VOCABULARY = 163_840


def encode(text: str) -> list[int]:
    """One id per word or mark."""
    return [
        zlib.crc32(word.encode()) % (VOCABULARY - 10_000) + 10_000 for word in re.findall(r"\w+|[^\w\s]", text)
    ]


def decode(ids: Sequence[int]) -> str:
    """The text of generated ids; others show as their number."""
    return "".join(
        " " + WORDS[token - FIRST_ID] if FIRST_ID <= token < FIRST_ID + len(WORDS) else f" <{token}>"
        for token in ids
    )


def answer(prompt: Sequence[int], max_tokens: int) -> tuple[list[int], bool]:
    """The ids that follow `prompt`, at most `max_tokens`, and whether the end is the model's own (700 to 1500)."""
    chance = random.Random(zlib.crc32(repr(list(prompt)).encode()))
    natural = chance.randrange(700, 1500)
    ids = [FIRST_ID + chance.randrange(len(WORDS)) for _ in range(min(max_tokens, natural))]
    return ids, natural <= max_tokens
