"""What is kept of a text for comparing it: digests of its beginnings, so that where two texts part is known."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

_FIRST = 1
_EARLIER_FIRST = 16
"""The first beginning in records of earlier versions: of a shorter text they hold one digest."""

_MARKS = re.compile(r"(\d{1,12}):((?:[0-9a-f]{8})+)")


def marks(text: str) -> str:
    """What is kept of a text for comparing it: its length, digests of its beginnings (1, 2, 4, 8, ...) and of all.

    `LENGTH:DIGESTS` of 8 hex digits each; 110 characters for a text of 4,000.
    """
    hasher, done, found = hashlib.sha256(), 0, []
    for length in _lengths(len(text)):
        hasher.update(text[done:length].encode("utf-8", "surrogatepass"))
        found.append(hasher.hexdigest()[:8])
        done = length
    return f"{len(text)}:{''.join(found)}"


def are_marks(text: str) -> bool:
    """Whether `text` has the form of marks."""
    return _MARKS.fullmatch(text) is not None


def length_of(text: str) -> int:
    """How many characters the text has whose marks these are. Raises ValueError for what are no marks."""
    return _read(text)[0]


def _lengths(total: int, first: int = _FIRST) -> list[int]:
    """The lengths of the beginnings that are digested: powers of two from `first` below `total`, and `total`."""
    lengths, length = [], first
    while length < total:
        lengths.append(length)
        length *= 2
    return [*lengths, total]


def is_same(a: str, b: str) -> bool:
    """Whether these are marks of one text: those that earlier versions made look different."""
    return a == b or divergence(a, b) is None


def divergence(a: str, b: str) -> tuple[int, int] | None:
    """Between how many equal characters (low <= n < high) two texts part, from their marks; None: they are equal.

    A text that ends where the other goes on parts from it there. Raises ValueError for what are no marks.
    """
    (len_a, digests_a), (len_b, digests_b) = _read(a), _read(b)
    if len_a == len_b and digests_a[len_a] == digests_b[len_b]:
        return None
    low, high = 0, min(len_a, len_b) + (len_a != len_b)
    for length in sorted(digests_a.keys() & digests_b.keys()):
        if digests_a[length] != digests_b[length]:
            return low, min(high, length)
        low = length
    return low, high


@lru_cache(maxsize=4096)  # of the baseline's marks: all trials are compared with the same few
def _read(text: str) -> tuple[int, dict[int, str]]:
    """Length of the text, and digests by the length of the beginning."""
    found = _MARKS.fullmatch(text)
    length, digests = (int(found[1]), found[2]) if found else (0, "")
    for lengths in (_lengths(length, _FIRST), _lengths(length, _EARLIER_FIRST)):
        if len(digests) == 8 * len(lengths):
            return length, {at: digests[8 * i : 8 * i + 8] for i, at in enumerate(lengths)}
    raise ValueError(f"no marks of a text: {text[:80]!r}")
