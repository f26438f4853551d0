"""What can be seen wrong in the value of a flag of any server in Python: types, bounds, words. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from sweeper.near_names import meant
from sweeper.spec import FlagValue

Bounds = tuple[float, float]
"""Lowest and highest legal value, both included."""

_UNBOUNDED = 2**31 - 1
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}(/[A-Za-z0-9][\w.-]{0,199})?")
_MAX_TEXT = 4096


def whole_mistake(value: FlagValue, bounds: Bounds) -> str:
    """What is wrong with a whole number; empty when nothing is, as for all of these."""
    low, high = bounds
    if isinstance(value, bool | str) or not float(value).is_integer():
        return f"{value!r} must be a whole number"
    if low <= value <= high:
        return ""
    return f"{value!r} must be from {low} to {high}" if high < _UNBOUNDED else f"{value!r} must be at least {low}"


def real_mistake(value: FlagValue, bounds: Bounds) -> str:
    """A number."""
    low, high = bounds
    if isinstance(value, bool | str):
        return f"{value!r} must be a number"
    return "" if low <= value <= high else f"{value!r} must be from {low:g} to {high:g}"


def bare_mistake(value: FlagValue) -> str:
    """A flag without a value."""
    return "" if isinstance(value, bool) else f"{value!r} should be true (the bare flag) or false (no flag)"


def list_mistake(value: FlagValue) -> str:
    """Whole numbers as several words, which are one text here."""
    words = str(value).split() if not isinstance(value, bool | float) else []
    if words and all(re.fullmatch(r"[1-9][0-9]{0,8}", word) for word in words):
        return ""
    return f"{value!r} should be whole numbers with spaces between them, for example '1 2 4 8'"


def choice_mistake(value: FlagValue, valid: Collection[str]) -> str:
    """One of a few words."""
    if value in valid:
        return ""
    return f"{value!r} is not one of its values: {', '.join(sorted(valid))}{meant(str(value), valid)}"


def text_mistake(value: FlagValue) -> str:
    """A text that no command line can carry, or that the server would take for another flag."""
    if not isinstance(value, str):
        return f"{value!r} should be text"
    if not value.strip():
        return "is empty"
    if len(value) > _MAX_TEXT or any(ord(character) < 32 for character in value):
        return f"{value[:60]!r} holds control characters or is too long"
    return f"{value!r} begins with a dash: the server would take it for a flag" if value.startswith("-") else ""


def path_mistake(value: FlagValue) -> str:
    """A model. Servers expand no ~, and look for anything else on the hub."""
    if str(value).startswith("/") or _HUB_NAME.fullmatch(str(value)):
        return ""
    return f"{value!r} should be an absolute folder on the host, or a name of the hub (organisation/model)"
