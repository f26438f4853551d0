"""Whether a text looks like tokens drawn at random and decoded: what load generators send without prompts.

No draft model can guess such text (12 % of the drafts are accepted where prose has 52 %), so configurations would
be ranked for what nobody serves. The measure is conservative: a real text that is refused costs a person more than
a random one that passes, and a file of random prompts holds many, of which one is enough.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache

_MIN_WORDS = 24
_MAX_WORDS = 200
_MIN_DISTINCT = 0.92
_MIN_SEAMS = 0.06
_MAX_SEAMS = 0.7
_MIN_CAPITALS = 0.05
_MAX_CAPITALS = 0.6
_MAX_STOPS = 0.04
_MAX_SYMBOLS = 1.2
_MAX_LINES = 0.15
_MIN_BLANKS = 0.3
"""All of these per word, over the first 200 words. Tried on 26,000 windows of 250 to 1,500 characters cut out of
prose and translations in 40 languages, code, tables, JSON, certificates and manuals: none is refused. Of texts of
128 random tokens of eight vocabularies (32,000 to 262,000 tokens) 63 to 98 % are."""

_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{41,}")
"""base64, hashes, keys: random, and yet no decoded tokens."""

_WORD = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"[a-zß-ÿа-џ][A-ZÀ-ÞА-Я]")
_STOP = re.compile(
    r"[.,;:!?)\]\"'”’]+(?=\s|$)"
    r"|[\u060c\u061b\u061f\u0964\u2026\u3001\u3002\u300c\u300d\uff01\uff0c\uff1a\uff1b\uff1f]"
)
_BLANKS = re.compile(r"\s+")
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "FULLWIDTH", "HALFWIDTH")
_LETTERS = ("Lu", "Ll", "Lt", "Lo")


def looks_random(text: str) -> bool:
    """Whether words that hardly ever return, glued together in their middle, stand without any punctuation.

    Tokens are pieces of words: drawn at random they meet inside a word (`expandedHeb`, two scripts in one word),
    never repeat a small word, and hardly ever put a comma or a full stop where a sentence has one. About every
    third begins with a capital letter: nearly all do in a list of brands, and none in one of identifiers.
    """
    words, head = _words(_BLOB.sub(" ", text))
    count = len(words)
    if count < _MIN_WORDS:
        return False
    spelt = Counter(word.casefold() for word in words if len(word) > 1)
    symbols = sum(not character.isalnum() and not character.isspace() for character in head)
    return (
        len(spelt) >= _MIN_DISTINCT * spelt.total()
        and _MIN_SEAMS <= sum(map(_has_seam, words)) / count <= _MAX_SEAMS
        and _MIN_CAPITALS <= sum(word[0].isupper() for word in words) / count <= _MAX_CAPITALS
        and len(_STOP.findall(head)) <= _MAX_STOPS * count
        and symbols <= _MAX_SYMBOLS * count
        and head.count("\n") <= _MAX_LINES * count
        and len(_BLANKS.findall(head)) >= _MIN_BLANKS * count
    )


def _words(text: str) -> tuple[list[str], str]:
    """The first words, runs of letters, and the text as far as they go."""
    words: list[str] = []
    end = 0
    for found in _WORD.finditer(text):
        words.append(found[0])
        end = found.end()
        if len(words) == _MAX_WORDS:
            break
    return words, text[:end]


def _has_seam(word: str) -> bool:
    """Whether a small letter meets a capital one in the word, or one script another."""
    return bool(_HUMP.search(word)) or len({script for c in word if (script := _script(c))}) > 1


@cache
def _script(character: str) -> str:
    """The script, by the character's Unicode name; empty for marks. Real words mix the East Asian ones."""
    if unicodedata.category(character) not in _LETTERS:
        return ""
    name = unicodedata.name(character, "?").partition(" ")[0]
    return "EAST ASIAN" if name.startswith(_EAST_ASIAN) else name
