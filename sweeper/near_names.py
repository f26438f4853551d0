"""The name that was probably meant: the one place that guesses it, for settings, options, flags and studies."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LEAST = 3
"""So many letters must have been written before a name is completed to a longer one."""


def nearest(word: str, names: Iterable[str]) -> str:
    """The name that is most like `word`, else the shortest that begins with it, ends with it or has it as a part.

    Empty when none is near: `n_gpu` is `n_gpu_layers`, `topk` is `speculative_eagle_topk`, `zzz` is nothing.
    """
    listed = sorted(names, key=lambda name: (len(name), name))
    if alike := difflib.get_close_matches(word, listed, n=1):
        return alike[0]
    if len(word) < _LEAST:
        return ""
    low = word.lower()
    for holds in (str.startswith, str.endswith, str.__contains__):
        for name in listed:
            if holds(name.lower(), low):
                return name
    return ""


def meant(word: str, names: Iterable[str]) -> str:
    """` (did you mean NAME?)`; empty when no name is near."""
    near = nearest(word, names)
    return f" (did you mean {near}?)" if near else ""
