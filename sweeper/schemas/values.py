"""JSON schemas of single values: plain ones, those that are searched, and both for a flag whose type is known.

The patterns follow what config/sweeps.py reads. They are for an editor: what they let pass is checked again before
anything is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sweeper.engines.flag_types import FlagType

Schema = Mapping[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"
INTERPOLATION = r"\$\{.+\}"
_NUMBER = r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_WHOLE = r"-?\d+"
_RANGE = r"range\(\s*(start=)?{n}\s*(,\s*(stop=)?{n}\s*)?(,\s*(step=)?{n}\s*)?\)"
_INTERVAL = rf"(tag\(\s*log\s*,\s*)?interval\(\s*(start=)?{_NUMBER}\s*,\s*(end=)?{_NUMBER}\s*\)\)?"
_WHOLE_INTERVAL = rf"(int\(\s*)?interval\(\s*(start=)?{_WHOLE}\s*,\s*(end=)?{_WHOLE}\s*\)\s*\)?"
_WRAPPED = r"(int|float|str|bool|sort|shuffle|tag)\(.+\)"
_ANY_CHOICE = r"choice\(\s*[^\s)].*\)"
_PLAIN = r"(?!\s*[A-Za-z_]\w*\s*\()[^\[\]{}]*|'.*'|\".*\"|[\[{].*[\]}]"
"""Text that is no call. By commas it is a choice, unless it is quoted or bracketed."""

_EXAMPLES = "choice(a, b), range(1, 8), range(0, 9, step=2), interval(0.8, 0.95), tag(log, interval(0.001, 1))"
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
PLAIN_FLAG: Schema = {**SCALAR, "description": "text, a number, true (the bare flag) or false (no flag)"}


def whole(*patterns: str) -> str:
    """A pattern that the whole text must match; in any case it may refer to another value."""
    return "^(" + "|".join(f"({pattern})" for pattern in (*patterns, INTERPOLATION)) + r"|\?\?\?)$"


SEARCHED: Schema = {
    "description": f"a plain value is fixed; searched are {_EXAMPLES}",
    "type": ["number", "boolean", "array", "string"],
    "items": SCALAR,
    "minItems": 1,
    "uniqueItems": True,
    "pattern": whole(_ANY_CHOICE, _RANGE.format(n=_NUMBER), _INTERVAL, _WRAPPED, _PLAIN),
    "patternErrorMessage": f"no sweep, and no plain value; write {_EXAMPLES}",
}
"""One schema for all types, since an editor's message on one of several alternatives says little."""

ENVIRONMENT: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    "additionalProperties": {"type": ["string", "number"]},
    "description": "environment variables, by their own names",
}
SEARCHED_ENVIRONMENT: Schema = {**ENVIRONMENT, "additionalProperties": SEARCHED}
WHEN: Schema = {
    "type": "object",
    "description": "under which values of other parameters a parameter exists: NAME: {OTHER: VALUE or [VALUES]}",
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"anyOf": [SCALAR, {"type": "array", "items": SCALAR, "minItems": 1}]},
    },
}


def or_interpolation(schema: Schema) -> Schema:
    """`schema`, or a value that refers to another one; what takes any text takes that too."""
    free_text = schema.get("type") == "string" and not {"enum", "const", "pattern"} & schema.keys()
    if free_text or any(one.get("type") == "string" and len(one) == 1 for one in schema.get("anyOf", ())):
        return schema
    kept = {name: schema[name] for name in ("description", "default") if name in schema}
    rest = {name: value for name, value in schema.items() if name not in kept}
    return {**kept, "anyOf": [rest, {"type": "string", "pattern": whole()}]}


def fixed_flag(kind: FlagType) -> Schema:
    """A flag's value in `engine.flags`."""
    if kind.kind == "refused":
        return _refused(kind)
    words, value = whole(_word(kind) or ".*") if _is_text(kind) else whole(), _value(kind)
    types = list(dict.fromkeys([*value["type"], "string"]))
    return {**value, "type": types, "pattern": words, "patternErrorMessage": f"should be {_words(kind)}"}


def searched_flag(kind: FlagType) -> Schema:
    """A flag's value in a space: as in `engine.flags`, or searched."""
    if kind.kind == "refused":
        return _refused(kind)
    value = _value(kind)
    listed = {name: part for name, part in value.items() if name != "description"}
    if _is_text(kind) and _word(kind):
        listed["pattern"] = f"^({_word(kind)})$"
    told = f"should be {_words(kind)}; or several of them: choice(...)"
    return {
        **value,
        "type": list(dict.fromkeys([*value["type"], "string", "array"])),
        "items": listed,
        "minItems": 1,
        "pattern": _sweeps(kind),
        "patternErrorMessage": told + (", range(...), interval(...)" if kind.kind in ("whole", "real") else ""),
    }


def _sweeps(kind: FlagType) -> str:
    """What text in a space may say of a flag of this type."""
    if kind.kind in ("whole", "real"):
        number = _WHOLE if kind.kind == "whole" else _NUMBER
        between = _WHOLE_INTERVAL if kind.kind == "whole" else _INTERVAL
        return whole(_choice(number), _RANGE.format(n=number), between)
    if kind.kind == "bare":
        return whole(_choice("[Tt]rue|[Ff]alse"))
    word = _word(kind)
    if word:
        return whole(word, _choice(rf"'{word}'|\"{word}\"|{_one_word(kind)}"))
    return whole(_ANY_CHOICE, _PLAIN)


def _choice(item: str) -> str:
    listed = rf"({item})(\s*,\s*({item}))*"
    return rf"(sort\(|shuffle\()?choice\(\s*{listed}\s*\)\)?|{listed}"


def _one_word(kind: FlagType) -> str:
    return "(" + "|".join(map(re.escape, kind.choices)) + ")" if kind.choices else _word(kind)


def _word(kind: FlagType) -> str:
    """The pattern of one textual value; empty when any text will do."""
    if kind.kind == "numbers":
        return r"[1-9]\d*( [1-9]\d*)*"
    listed = "(" + "|".join(map(re.escape, kind.choices)) + ")"
    if kind.kind == "words":
        return f"{listed}(,{listed})*"
    return listed if kind.choices else ""


def _is_text(kind: FlagType) -> bool:
    return kind.kind in ("text", "words", "numbers")


def _value(kind: FlagType) -> dict[str, Any]:
    """The types and limits of one plain value. A flag that takes text may be left away: false."""
    types: dict[str, list[str]] = {"whole": ["integer"], "real": ["number"], "bare": ["boolean"]}
    known = types.get(kind.kind, ["string", "boolean", *(["integer"] if kind.kind == "numbers" else [])])
    bounds = {"minimum": kind.low, "maximum": kind.high}
    limits: dict[str, Any] = {name: value for name, value in bounds.items() if value is not None}
    if _is_text(kind):
        limits["not"] = {"const": True}
    return {"description": _words(kind), "type": known, **limits}


def _refused(kind: FlagType) -> Schema:
    return {"not": {}, "doNotSuggest": True, "description": kind.note, "deprecationMessage": kind.note}


def _words(kind: FlagType) -> str:
    names = {"whole": "whole number", "real": "number", "bare": "true (the bare flag) or false (no flag)"}
    text = names.get(kind.kind, "text")
    if kind.choices:
        text = f"{'one of' if kind.kind == 'text' else 'by commas'}: {', '.join(kind.choices)}"
    if kind.low is not None:
        text += f", at least {kind.low:g}" + (f", at most {kind.high:g}" if (kind.high or 0) < 2**31 - 1 else "")
    return text + (f"; {kind.note}" if kind.note else "")
