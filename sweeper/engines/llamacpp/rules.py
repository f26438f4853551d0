"""What llama.cpp makes of its flags: equal configurations, mistakes, and combinations that do nothing or crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweeper.engines.llamacpp.flags import NO_EFFECT, NUMBERS, OWN_HEADS, PLACED, RENAMED, TYPES, NumberRule
from sweeper.near_names import meant
from sweeper.spec import FlagValue, ServerConfig


def spec_types(flags: Mapping[str, FlagValue]) -> tuple[str, ...]:
    """The speculative types that are asked for, in the server's order, each once; empty for none.

    `none` anywhere in the list switches speculation off (common_speculative_types_from_names).
    """
    names = {name.strip() for name in str(flags.get("spec_type") or "none").split(",")} - {""}
    if "none" in names:
        return ()
    known = tuple(name for name in TYPES if name in names)
    return (*known, *sorted(names - TYPES.keys()))


def canonical_flags(flags: Mapping[str, FlagValue]) -> dict[str, FlagValue]:
    """`flags` with equal things spelt equally: none without effect, the defaults of the drafters in use added.

    A draft model without a type is dropped with the rest: the server loads it and never drafts.
    """
    types = spec_types(flags)
    kept = {
        name: plain(name, value)
        for name, value in sorted(flags.items())
        if value is not False and name != "spec_type" and _has_effect(name, types)
    }
    if types:
        kept["spec_type"] = ",".join(types)
        for name in (name for kind in types for name in TYPES.get(kind, ())):
            kept.setdefault(name, NUMBERS[name].default)
    return kept


def _has_effect(name: str, types: Sequence[str]) -> bool:
    """Whether a flag changes anything under these speculative types."""
    if not name.startswith("spec_"):
        return True
    if name in NO_EFFECT or not types:
        return False
    if name in NUMBERS:
        return any(name in TYPES.get(kind, ()) for kind in types)
    return not name.startswith("spec_draft_") or any(kind.startswith("draft-") for kind in types)


def plain(name: str, value: FlagValue) -> FlagValue:
    """The value in its flag's own type: 4.0 is 4 and, for a real-valued flag, 0 is 0.0."""
    if isinstance(value, bool | str):
        return value
    if name in NUMBERS and NUMBERS[name].kind is float:
        return float(value) + 0.0  # -0.0 becomes 0.0
    return int(value) if float(value).is_integer() else value


def value_mistakes(name: str, values: Sequence[FlagValue]) -> list[str]:
    """Mistakes in the name of a flag or in single values of it; one line each, beginning with the name."""
    if name in RENAMED:
        return [f"{name}: is not a flag of this llama-server; use {RENAMED[name]}"]
    if name in PLACED:
        return [f"{name}: is set for every launch and cannot be configured"]
    if not name.replace("_", "").isalnum() or not name.isascii() or name != name.lower():
        return [f"{name}: is not a flag's name; write --spec-type as spec_type"]
    if name == "spec_type":
        return [line for value in values for line in _type_mistakes(value)]
    if name == "spec_draft_model":
        return [f"{name}: {v!r} is not a path" for v in values if not isinstance(v, str) or not v]
    rule = NUMBERS.get(name)
    return [line for value in values if rule for line in _number_mistakes(name, value, rule)]


def _type_mistakes(value: FlagValue) -> list[str]:
    """What is wrong with one value of spec_type."""
    valid = ", ".join(("none", *TYPES))
    if not isinstance(value, str) or not value:
        return [f"spec_type: {value!r} is not a speculative type; valid: {valid}"]
    unknown = [name for name in value.split(",") if name not in ("none", *TYPES)]
    return [
        f"spec_type: {name!r} is not a speculative type; valid: {valid}{meant(name, ('none', *TYPES))}"
        for name in unknown
    ]


def _number_mistakes(name: str, value: FlagValue, rule: NumberRule) -> list[str]:
    """What is wrong with one value of a numeric flag."""
    if isinstance(value, bool | str) or (rule.kind is int and not float(value).is_integer()):
        return [f"{name}: {value!r} must be a {'whole number' if rule.kind is int else 'number'}"]
    if not rule.low <= value <= rule.high:
        limits = f"at least {rule.low}" if rule.high == 2**31 - 1 else f"from {rule.low} to {rule.high}"
        return [f"{name}: {value!r} must be {limits}: {rule.why}"]
    return []


def combination_mistakes(config: ServerConfig) -> list[str]:
    """What is wrong with values that are each legal alone. `config` must be canonical and free of mistakes."""
    flags, types = config.flags, spec_types(config.flags)
    broken = []
    needs_model = [kind for kind in types if kind.startswith("draft-") and kind not in OWN_HEADS]
    if needs_model and not flags.get("spec_draft_model"):
        # draft-simple: "failed to initialize speculative decoding context", then it serves without any
        # speculation, n-grams asked for beside it included; draft-eagle3, draft-dflash: the same without a word.
        broken.append(
            f"spec_type {needs_model[0]} needs spec_draft_model: the server would serve without speculation"
        )
    if any(kind.startswith("draft-") for kind in types) and _number(flags, "spec_draft_n_min") > _number(
        flags, "spec_draft_n_max"
    ):
        # A draft shorter than n_min is thrown away, and none can be longer than n_max.
        broken.append(_greater(flags, "spec_draft_n_min", "spec_draft_n_max"))
    if "ngram-simple" in types and _number(flags, "spec_ngram_simple_size_m") < _number(
        flags, "spec_ngram_simple_size_n"
    ):
        # common/ngram-map.cpp, common_ngram_simple_draft: a draft shorter than size_n is not used.
        broken.append(_greater(flags, "spec_ngram_simple_size_n", "spec_ngram_simple_size_m"))
    return broken


def _number(flags: Mapping[str, FlagValue], name: str) -> float:
    """The value of a numeric flag, or the server's default."""
    return float(flags.get(name, NUMBERS[name].default))


def _greater(flags: Mapping[str, FlagValue], first: str, second: str) -> str:
    """The violation `first` > `second`."""
    values = f"{first}={_number(flags, first):g} > {second}={_number(flags, second):g}"
    return f"{values}: every draft is thrown away, silently"


def max_draft_tokens(flags: Mapping[str, FlagValue]) -> int:
    """The longest draft that these flags allow; 0 without speculation."""
    types = spec_types(flags)
    lengths = [8] if "ngram-cache" in types else []  # fixed in common/speculative.cpp, create_state_ngram_cache
    names = [name for kind in types for name in TYPES.get(kind, ()) if name.endswith(("n_max", "size_m"))]
    return max([*lengths, *(int(_number(flags, name)) for name in names)], default=0)
