"""How a mistake in the configuration is worded: dotted path, the value, what would be right, valid names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from launchers.masking import MASK, hide_shapes, is_secret_name
from sweeper.near_names import meant
from sweeper.spec import SweepSpec

Model = TypeVar("Model", bound=BaseModel)

NOT_GIVEN = "is missing; a value must be given"
_MAX_SHOWN = 60
_CHOSEN = ("preset",)
"""What a command line may choose beside the names of the schema."""

_FILES = ("engine", "host", "model", "space", "workload", "study", "tracking")
"""The sections that a file is chosen for."""

_MAX_NAMES = 16

_RESOLVING = re.compile(r"^\w+ raised while resolving interpolation: |\d+ required positional ")
_VARIABLE = re.compile(r"Environment variable '([^']*)' not found")

_RULES: Mapping[str, str] = {
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
    "string_type": "should be text; quote it, twice on the command line: '{path}=\"...\"'",
    "string_too_short": "should not be empty",
    "string_pattern_mismatch": "should match {pattern}: letters, digits and {signs}, the first a letter or digit",
    "string_too_long": "should have at most {max_length} characters",
    "too_short": "should have at least one entry",
    "too_long": "should have at most {max_length} entries",
    "tuple_type": "should be a list: [a, b]",
    "dict_type": "should be a mapping: NAME: value",
    "mapping_type": "should be a mapping: NAME: value",
    "model_type": "should be a mapping with {names}",
    "literal_error": "should be {expected}",
    "finite_number": "should be a finite number",
    "greater_than": "should be greater than {gt}",
    "greater_than_equal": "should be {ge} or greater",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be {le} or less",
    "value_error": "is wrong: {error}",
}
"""What would be right, for each pydantic error that the schema can raise; others keep pydantic's own words."""


def shown(value: object) -> str:
    """The value on one line, bounded, with the password of a URL left out."""
    if value is None or isinstance(value, bool):
        return str({None: "null", True: "true", False: "false"}[value])
    text = hide_shapes(repr(value))
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def one_line(text: str, limit: int = 300) -> str:
    """The text of a library's error on one bounded line, passwords left out."""
    return hide_shapes(" ".join(text.split()))[:limit]


def valid_names(word: object, valid: Iterable[str]) -> str:
    """`valid: a, b, c (did you mean a?)`, for a word that is none of them; a long list is cut."""
    names = list(valid)
    listed = ", ".join(names[:_MAX_NAMES]) or "none"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"valid: {listed}{more}{meant(str(word), names)}"


def cannot_resolve(path: str, reason: str) -> str:
    """Why a value that refers to another one, or to the environment, has none; empty: told elsewhere."""
    if "MissingMandatoryValue" in reason:  # the value that it refers to is told itself
        return ""
    if found := _VARIABLE.search(reason):
        variable = found[1]
        return (
            f"{path}: needs the environment variable {variable}; set it, or write ${{oc.env:{variable},default}}"
        )
    told = _RESOLVING.sub("", reason.partition("full_key:")[0])
    return f"{path}: cannot be resolved: {one_line(told)}; a reference is written ${{PATH}} or ${{oc.env:NAME}}"


def unicode_mistake(text: str) -> str:
    """Why text, from an escape like "\\ud800" or from bytes that are not UTF-8, cannot be kept; else empty."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half a character (a lone surrogate)"
    return ""


def schema_mistakes(error: ValidationError, already: Iterable[str] = (), under: Sequence[str] = ()) -> list[str]:
    """One line for each wrong place, seen from the place `under`, which is the whole configuration if empty.

    Places that are, or lie in, one of the paths `already` are left out.

    A list whose entries are wrong also counts as too short: only the entries are told.
    """
    told = set(already)
    lines: list[str] = []
    for details in error.errors():
        details["loc"] = (*under, *details["loc"])
        path = _path(details["loc"])
        if details["type"] == "too_short" and any(known.startswith(f"{path}.") for known in told):
            continue
        if not any(path == known or path.startswith(f"{known}.") for known in told):
            told.add(path)
            lines.append(_line(path, details))
    return lines


def checked(make: Callable[[], Model]) -> Model:
    """What `make` makes. Raises ValueError that says, without a path, what is wrong with it."""
    try:
        return make()
    except ValidationError as error:
        reasons = [_rule("", details).removeprefix("is wrong: ") for details in error.errors()]
        raise ValueError("; ".join(reasons)) from None


def _path(loc: Sequence[int | str]) -> str:
    """Dotted path. Below engine.flags.NAME come only the types that a flag's value could have had."""
    parts = loc[:3] if tuple(loc[:2]) == ("engine", "flags") else loc
    return ".".join(str(part) for part in parts)


def _line(path: str, details: ErrorDetails) -> str:
    kind, value, names = details["type"], details["input"], _names_at(details["loc"][:-1])
    if kind == "missing":
        return f"{path}: {NOT_GIVEN}"
    if kind == "extra_forbidden":
        return f"{path}: unknown name; {_meant(details['loc'], names)}"
    if path.startswith("engine.flags.") and value is None:
        return f"{path}: null is no value; false leaves a flag away, ~{path} removes it"
    told = MASK if is_secret_name(path) else shown(value)
    if path.startswith("engine.flags."):
        return f"{path}: {told} should be text, a number, true or false"
    return f"{path}: {told} {_rule(path, details)}"


def _meant(loc: Sequence[int | str], names: Sequence[str]) -> str:
    """The valid names at a place; at the top also the path of a setting that has this name further down."""
    word = str(loc[-1])
    if "." in word and word.partition(".")[0] in (*names, *loc):
        return f"names stand within one another here: {word.replace('.', ': {')}: ...{'}' * word.count('.')}"
    if len(loc) > 1:
        return valid_names(word, names)
    deeper = [f"{group}.{word}" for group in names if word in _names_at((group,))]
    return valid_names(word, (*names, *_CHOSEN)) + (f" (did you mean {' or '.join(deeper)}?)" if deeper else "")


def _rule(path: str, details: ErrorDetails) -> str:
    limits: dict[str, Any] = details.get("ctx", {})
    context = {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in limits.items()}
    if details["type"] not in _RULES:
        return one_line(details["msg"])
    if details["type"] == "string_pattern_mismatch":
        context["signs"] = " ".join(sign for sign in "._-" if sign in str(context["pattern"]).partition("]")[2])
    text = _RULES[details["type"]].format(path=path, names=", ".join(_names_at(details["loc"])), **context)
    if path == "budget.until" and details["type"] == "string_type":
        return "should be a time of day, as 07:00"
    if details["type"] == "model_type" and isinstance(details["input"], str) and path in _FILES:
        return f"{text}; a file is chosen by {path}={details['input']}, in a preset by `- override /{path}: ...`"
    if details["type"] == "float_type" and path.endswith("_s"):
        return f"{text} of seconds"
    if details["type"] == "string_type" and isinstance(details["input"], bool):
        return f"{text} (true, false and, in YAML files, on, off, yes, no are read as booleans)"
    return text


def _without_none(annotation: object) -> object:
    """`X` of `X | None`."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in get_args(annotation) else annotation


def _names_at(loc: Sequence[int | str]) -> tuple[str, ...]:
    """The names that the schema has below a place."""
    model: Any = SweepSpec
    for part in loc:
        if isinstance(part, str) and isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(part)
            model = _without_none(field.annotation) if field else None
        else:
            model = (get_args(model) or (None,))[0]
    return tuple(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else ()
