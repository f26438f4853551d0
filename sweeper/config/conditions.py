"""From the mapping under `space` to the parameters that are searched, with every mistake in it.

Each name stands for a flag of the server, with its values (sweeper/config/sweeps.py says how they are written);
environment variables stand under `env`. `when` gives conditions: `when: {A: {B: [x, y]}}` says that A exists
while B is x or y. B may be searched or fixed; a parameter that can never exist is left away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launchers.masking import is_secret_name
from sweeper.config.mistakes import shown, valid_names
from sweeper.config.sweeps import Reader, domain_or_value, plain_value
from sweeper.space import contains, describe
from sweeper.spec import Choice, Domain, FlagValue, Interval, IntRange, Parameter

NOTHING_TO_SEARCH = "space: nothing to search; give values like space.NAME='choice(2,4)'"
_Conditions = dict[str, tuple[FlagValue, ...]]


@dataclass
class BuiltSpace:
    """What `space` comes to: searched parameters in order, fixed flags and environment, all mistakes.

    `asked` holds the values that conditions ask of fixed flags: an engine can tell whether they exist.
    """

    parameters: dict[str, Parameter] = field(default_factory=dict)
    fixed: dict[str, FlagValue] = field(default_factory=dict)
    fixed_env: dict[str, FlagValue] = field(default_factory=dict)
    asked: dict[str, tuple[FlagValue, ...]] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


@dataclass
class _Source:
    """The mapping, read. `names` (to "is an environment variable") also holds what was not understood."""

    names: dict[str, bool] = field(default_factory=dict)
    values: dict[str, Domain | FlagValue] = field(default_factory=dict)
    when: dict[str, _Conditions] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


def build_space(
    source: Mapping[str, object],
    before: Mapping[str, object],
    flags: Mapping[str, FlagValue],
    read: Reader,
) -> BuiltSpace:
    """The space that `source` describes, beside the engine's fixed `flags`.

    `before` is the same space before the command line changed it. A condition may ask for a value that was
    there before: narrowing a choice then only leaves the parameters away that depended on the rest of it.
    """
    asked, earlier = _read(source, read), _read(before, read)
    _check_names(asked, flags)
    built = BuiltSpace(mistakes=asked.mistakes)
    outside = {name: value for name, value in flags.items() if name not in asked.names}
    for name in _ordered(asked):
        _place(name, asked, earlier.values, outside, built)
    if not built.parameters and not built.mistakes:
        built.mistakes.append(NOTHING_TO_SEARCH)
    return built


def _read(source: Mapping[str, object], read: Reader) -> _Source:
    result = _Source()
    flags = [(name, raw, False) for name, raw in source.items() if name not in ("env", "when")]
    variables = _below("space.env", source.get("env") or {}, result)
    for name, raw, is_env in [*flags, *((name, raw, True) for name, raw in variables.items())]:
        path = f"space.env.{name}" if is_env else f"space.{name}"
        if name in result.names:
            result.mistakes.append(f"{path}: a flag has this name; conditions could not tell them apart")
            continue
        result.names[name] = is_env
        try:
            value = domain_or_value(raw, read)
            if isinstance(value, Choice | IntRange | Interval) and is_secret_name(name):
                where = "env" if is_env else "flags"
                raise ValueError(
                    f"a secret is not searched, it would stand in the study; set engine.{where}.{name}"
                )
            result.values[name] = _env_value(value) if is_env else value
        except ValueError as error:
            result.mistakes.append(f"{path}: {shown(raw)}: {error}")
    _read_conditions(source.get("when") or {}, result)
    return result


def _read_conditions(source: object, result: _Source) -> None:
    for name, conditions in _below("space.when", source, result).items():
        result.when[name] = {}
        for other, allowed in _below(f"space.when.{name}", conditions, result).items():
            listed = allowed if isinstance(allowed, list) else [allowed]
            try:
                result.when[name][other] = tuple(plain_value(value) for value in listed)
            except ValueError as error:
                result.mistakes.append(f"space.when.{name}.{other}: {shown(allowed)}: {error}")


def _below(path: str, raw: object, result: _Source) -> Mapping[str, object]:
    """`raw` as a mapping; empty, with a mistake, when it is none."""
    if isinstance(raw, Mapping):
        return raw
    example = "PARAMETER: {OTHER: value or list}" if path == "space.when" else "NAME: value"
    result.mistakes.append(f"{path}: {shown(raw)} should be a mapping: {example}")
    return {}


def _env_value(value: Domain | FlagValue) -> Domain | FlagValue:
    values = value.values if isinstance(value, Choice) else (value,)
    if any(isinstance(item, bool) for item in values):
        raise ValueError("an environment variable holds text or a number: write 0 and 1, or quote the words")
    return value


def _check_names(asked: _Source, flags: Mapping[str, FlagValue]) -> None:
    """Complain of conditions on or for what does not exist, and forget them."""
    for name in [name for name in asked.when if name not in asked.names]:
        asked.mistakes.append(f"space.when.{name}: not a parameter of the space; {valid_names(name, asked.names)}")
        del asked.when[name]
    unknown: dict[str, list[str]] = {}
    for name, conditions in asked.when.items():
        for other in [other for other in conditions if other not in asked.names and other not in flags]:
            unknown.setdefault(other, []).append(name)
            del conditions[other]
    for other, names in unknown.items():
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        valid = valid_names(other, [name for name in (*asked.names, *flags) if name != names[0]])
        asked.mistakes.append(
            f"space.when.{names[0]}.{other}{more}: neither a parameter nor a fixed flag; {valid}"
        )


def _ordered(asked: _Source) -> list[str]:
    """The names in their own order, except that a condition looks back; without those that go in a circle."""
    order: list[str] = []
    waiting = list(asked.values)
    while ready := [name for name in waiting if not _pending(name, waiting, asked)]:
        order.append(ready[0])
        waiting.remove(ready[0])
    if waiting:
        circle = [waiting[0]]
        while circle.count(circle[-1]) == 1:
            circle.append(_pending(circle[-1], waiting, asked)[0])
        circle = circle[circle.index(circle[-1]) :]
        asked.mistakes.append(f"space.when: the conditions go in a circle: {' needs '.join(circle)}")
    return order


def _pending(name: str, waiting: list[str], asked: _Source) -> list[str]:
    return [other for other in asked.when.get(name, {}) if other in waiting]


def _place(
    name: str, asked: _Source, earlier: Mapping[str, object], outside: Mapping[str, FlagValue], built: BuiltSpace
) -> None:
    """Add one name to the space: searched, fixed, or left away because its conditions never hold."""
    fixed = {**outside, **built.fixed, **built.fixed_env}
    when: _Conditions = {}
    for other, allowed in asked.when.get(name, {}).items():
        if other in fixed:
            built.asked[other] = built.asked.get(other, ()) + allowed
            if fixed[other] not in allowed:
                return
        elif other not in built.parameters:
            return
        else:
            when[other] = _possible(f"space.when.{name}.{other}", allowed, built.parameters[other], earlier, built)
            if not when[other]:
                return
    value, is_env = asked.values[name], asked.names[name]
    if isinstance(value, Choice | IntRange | Interval):
        built.parameters[name] = Parameter(name=name, domain=value, is_env=is_env, when=when)
    elif when:
        built.parameters[name] = Parameter(name=name, domain=Choice(values=(value,)), is_env=is_env, when=when)
    elif is_env:
        built.fixed_env[name] = value
    else:
        built.fixed[name] = value


def _possible(
    path: str,
    allowed: tuple[FlagValue, ...],
    other: Parameter,
    earlier: Mapping[str, object],
    built: BuiltSpace,
) -> tuple[FlagValue, ...]:
    """Those of `allowed` that `other` can take; complains of values that it could not take earlier either."""
    before = earlier.get(other.name)
    for value in allowed:
        known = isinstance(before, Choice | IntRange | Interval) and contains(before, value)
        if not known and not contains(other.domain, value):
            built.mistakes.append(
                f"{path}: {shown(value)} is never the value of {other.name}; {_valid(other, value)}"
            )
    return tuple(value for value in allowed if contains(other.domain, value))


def _valid(other: Parameter, value: FlagValue) -> str:
    if isinstance(other.domain, Choice):
        return valid_names(value, [str(item) for item in other.domain.values])
    return f"valid: {describe(other.domain)}"
