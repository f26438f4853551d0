"""What can be seen wrong in single flags of vLLM: names, types, bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from sweeper.engines.flag_values import (
    bare_mistake,
    choice_mistake,
    list_mistake,
    path_mistake,
    real_mistake,
    text_mistake,
    whole_mistake,
)
from sweeper.engines.vllm.table import (
    BARE,
    CHOICES,
    LISTS,
    METHOD,
    METHODS,
    MODEL,
    ON_BY_DEFAULT,
    PLACED,
    REAL,
    RENAMED,
    TEXT,
    UNUSABLE,
    WHOLE,
)
from sweeper.spec import FlagValue

_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,60}")
_ALIKE, _NEARLY = 0.85, 0.93
_KNOWN = tuple(sorted({*WHOLE, *REAL, *BARE, *TEXT, *LISTS, *CHOICES}))


def flag_mistakes(flags: Mapping[str, Sequence[FlagValue]]) -> list[str]:
    """Mistakes that can be seen in single values; `flags` maps a flag to all values it may take.

    Each line starts with the flag's name. Combinations are judged elsewhere (rules.py).
    """
    return [line for name, values in flags.items() for line in _mistakes(name, values)]


def _mistakes(name: str, values: Sequence[FlagValue]) -> list[str]:
    if mistake := _name_mistake(name):
        return [f"{name}: {mistake}"]
    return [f"{name}: {mistake}" for value in values if (mistake := _value_mistake(name, value))]


def _name_mistake(name: str) -> str:
    """What is wrong with the name. A flag that no table has is left to the host's own help."""
    if not _NAME.fullmatch(name):
        return "is not a flag's name; write --max-num-seqs as max_num_seqs"
    if name in UNUSABLE:
        return UNUSABLE[name] if name == "speculative_config" else f"cannot be used: {UNUSABLE[name]}"
    if name in PLACED:
        return "is set for every launch and cannot be configured" + (
            f"; see {PLACED[name]}" if PLACED[name] else ""
        )
    if name in RENAMED:
        return f"is written {RENAMED[name]} here"
    if name in _KNOWN:
        return ""
    alike = get_close_matches(name, _KNOWN, n=1, cutoff=_ALIKE if name.startswith("spec_") else _NEARLY)
    return f"is not a flag of vLLM; is {alike[0]} meant?" if alike and not name.startswith("no_") else ""


def _value_mistake(name: str, value: FlagValue) -> str:
    """What is wrong with one value; empty when nothing is."""
    if name == METHOD:
        return _method_mistake(value)
    if name in WHOLE:
        return whole_mistake(value, WHOLE[name])
    if name in REAL:
        return _real_mistake(name, value)
    if name in BARE:
        return _bare_mistake(name, value)
    if name in LISTS:
        return list_mistake(value)
    if name in CHOICES:
        return choice_mistake(value, CHOICES[name])
    mistake = text_mistake(value) if name in TEXT or isinstance(value, str) else ""
    return mistake or (path_mistake(value) if name == MODEL else "")


def _method_mistake(value: FlagValue) -> str:
    """One that no table has may be of another version; one that is nearly a known one is misspelt."""
    valid = f"none, {', '.join(METHODS)}"
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        return f"{value!r} is not one of its values: {valid}"
    if value in METHODS or value == "none" or value.endswith("_mtp"):
        return ""
    alike = get_close_matches(value, METHODS, n=1, cutoff=0.75)
    return f"{value!r} is not one of its values: {valid}; is {alike[0]} meant?" if alike else ""


def _real_mistake(name: str, value: FlagValue) -> str:
    if name == "gpu_memory_utilization" and not isinstance(value, bool | str) and not 0 < value <= 1:
        return f"{value!r} must lie between 0 and 1, for example 0.9"
    return real_mistake(value, REAL[name])


def _bare_mistake(name: str, value: FlagValue) -> str:
    if value is False and name in ON_BY_DEFAULT:
        return f"false leaves the flag away, and vLLM switches it on by itself; write no_{name}: true"
    return bare_mistake(value)
