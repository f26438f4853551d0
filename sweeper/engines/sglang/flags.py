"""What can be seen wrong in single flags of SGLang: names, types, bounds; and what a fair sweep must fix."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from sweeper.engines.flag_values import (
    bare_mistake,
    choice_mistake,
    list_mistake,
    path_mistake,
    real_mistake,
    text_mistake,
    whole_mistake,
)
from sweeper.engines.sglang.table import (
    ALGORITHMS,
    BARE,
    BARE_PREFIXES,
    CHOICES,
    LISTS,
    PLACED,
    REAL,
    RENAMED,
    TEXT,
    WHOLE,
)
from sweeper.near_names import meant
from sweeper.spec import FlagValue

_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")

KNOWN = frozenset({*WHOLE, *REAL, *BARE, *TEXT, *LISTS, *CHOICES, *PLACED, *RENAMED, "mem_fraction_static"})
NOT_ABBREVIATIONS = frozenset({"cuda_graph_backend", "enable", "disable"})
_KEYS = frozenset({"api_key", "admin_api_key"})


def flag_mistakes(flags: Mapping[str, Sequence[FlagValue]]) -> list[str]:
    """Mistakes that can be seen in single values; `flags` maps a flag to all values it may take.

    Each line starts with the flag's name. Combinations are judged elsewhere (rules.py).
    """
    return [line for name, values in flags.items() for line in _mistakes(name, values)]


def takes_whole_numbers(flag: str) -> bool:
    """Whether `flag` is known to take whole numbers only."""
    return flag in WHOLE


def _mistakes(name: str, values: Sequence[FlagValue]) -> list[str]:
    if mistake := _name_mistake(name):
        return [f"{name}: {mistake}"]
    return [f"{name}: {mistake}" for value in values if (mistake := _value_mistake(name, value))]


def _name_mistake(name: str) -> str:
    """What is wrong with the name. argparse takes any unambiguous beginning of a flag for the flag: we do not."""
    if not _NAME.fullmatch(name):
        return "is not a flag's name; write --speculative-algorithm as speculative_algorithm"
    if name in RENAMED:
        return f"is another spelling of {RENAMED[name]}; write that one"
    if name in _KEYS:
        return "cannot be used: requests carry no key; the server listens on the host's own loopback address"
    if name in PLACED:
        where = f"; see {PLACED[name]}" if PLACED[name] else ""
        return f"is set for every launch and cannot be configured{where}"
    if name in KNOWN:
        return ""
    longer = sorted(known for known in KNOWN - RENAMED.keys() if known.startswith(name))
    if len(name) > 3 and longer and name not in NOT_ABBREVIATIONS:
        return f"is an abbreviation of {' or '.join(longer[:3])}; write it out"
    return ""


def _value_mistake(name: str, value: FlagValue) -> str:
    """What is wrong with one value; empty when nothing is."""
    if name == "speculative_algorithm":
        return _algorithm_mistake(value)
    if name == "log_level":
        return "" if value in ("debug", "info") else f"{value!r} hides the lines that show CUDA graphs; use info"
    if name in WHOLE:
        return _whole_mistake(name, value)
    if name in REAL:
        return _real_mistake(name, value)
    if name in BARE or name.startswith(BARE_PREFIXES):
        return bare_mistake(value)
    if name in LISTS:
        return list_mistake(value)
    if name in CHOICES:
        return choice_mistake(value, CHOICES[name])
    mistake = text_mistake(value) if name in TEXT or isinstance(value, str) else ""
    return mistake or (path_mistake(value) if name == "speculative_draft_model_path" else "")


def _algorithm_mistake(value: FlagValue) -> str:
    """`none`, in any case, stands for no speculation; the others are written as the server reports them."""
    if isinstance(value, str) and (value in ALGORITHMS or value.lower() == "none"):
        return ""
    if isinstance(value, str) and value.upper() in ALGORITHMS:
        return f"{value!r} should be {value.upper()!r}: versions before 0.5.15 know no lower case"
    valid = ("none", *ALGORITHMS)
    return f"{value!r} is not one of its values: {', '.join(valid)}{meant(str(value), valid)}"


def _whole_mistake(name: str, value: FlagValue) -> str:
    if name == "chunked_prefill_size" and value == 0 and not isinstance(value, bool):
        return "0 means nothing; -1 switches chunked prefill off"
    return whole_mistake(value, WHOLE[name])


def _real_mistake(name: str, value: FlagValue) -> str:
    low, high = REAL[name]
    if name == "mem_fraction_static" and not isinstance(value, bool | str) and not low < value < high:
        return f"{value!r} must lie between 0 and 1, for example 0.85"
    return real_mistake(value, (low, high))


_ALWAYS_NEEDED: Mapping[str, tuple[str, str]] = {
    # Flag to why it must be said, and an example.
    "max_running_requests": (
        "SGLang sets it to 48 with speculation and not without, so the baseline would run under other limits",
        "8",
    ),
    "mem_fraction_static": (
        "its default depends on the speculation, so the memory for the KV cache would change with it",
        "0.85",
    ),
    "attention_backend": (
        "its default changes with speculative_eagle_topk (on an H200 fa3 at 1, flashinfer above)",
        "triton",
    ),
}
_NEEDED_BY_DRAFTS: Mapping[str, tuple[str, str]] = {
    "speculative_draft_attention_backend": (
        "its default follows attention_backend, which not every draft can run on",
        "triton",
    ),
}


def config_mistakes(fixed: Mapping[str, FlagValue], searched: Collection[str]) -> list[str]:
    """What a fair comparison needs and `engine.flags` does not say, one line each with its dotted path.

    A searched flag needs a value in engine.flags all the same: the baseline gets that one.
    """
    return [
        f"engine.flags.{name}: is missing; {why}, e.g. {name}: {example}"
        for name, (why, example) in _needed(fixed, searched).items()
        if fixed.get(name) is None and not (name in searched and name in _NEEDED_BY_DRAFTS)
    ]


def _needed(fixed: Mapping[str, FlagValue], searched: Collection[str]) -> Mapping[str, tuple[str, str]]:
    """Flag to why it must be said, and an example."""
    return {**_ALWAYS_NEEDED, **_NEEDED_BY_DRAFTS} if _uses_drafts(fixed, searched) else _ALWAYS_NEEDED


def _uses_drafts(fixed: Mapping[str, FlagValue], searched: Collection[str]) -> bool:
    """Whether a draft model may be in use."""
    return "speculative_draft_model_path" in searched or bool(fixed.get("speculative_draft_model_path"))
