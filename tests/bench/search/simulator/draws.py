"""Random numbers that depend only on what they are for, never on the order in which they are asked for."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)


def uniform(*parts: ArrayLike) -> Floats:
    """Numbers in (0, 1), one for each combination of the integer parts; arrays are broadcast (SplitMix64)."""
    with np.errstate(over="ignore"):
        words: Words = np.asarray(0x1234567, dtype=np.uint64)
        for part in parts:
            words = _scrambled(words ^ (np.asarray(part).astype(np.uint64) * _SPREAD))
    numbers: Floats = ((words >> np.uint64(11)).astype(np.float64) + 0.5) / float(1 << 53)
    return numbers


def generator(*parts: object) -> np.random.Generator:
    """A generator for whatever the parts name."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def _scrambled(words: Words) -> Words:
    words = words + _STEP
    words = (words ^ (words >> np.uint64(30))) * _MIX_1
    words = (words ^ (words >> np.uint64(27))) * _MIX_2
    mixed: Words = words ^ (words >> np.uint64(31))
    return mixed
