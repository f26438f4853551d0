"""The search space as a search walks it: conditions, all combinations, their number. Pure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from sweeper.spec import Choice, Domain, FlagValue, Interval, IntRange, Parameter, ServerConfig, SpaceSpec

_OTHER = object()
"""Stands for every value of a parameter that no condition mentions."""


def active(parameters: Sequence[Parameter], chosen: Mapping[str, FlagValue]) -> tuple[Parameter, ...]:
    """The parameters that exist when `chosen` are the values of the others, in their order.

    A parameter exists when each parameter it depends on exists and has one of the values it asks for.
    """
    alive: dict[str, FlagValue] = {}
    found: list[Parameter] = []
    for parameter in parameters:
        if _is_active(parameter, alive):
            found.append(parameter)
            if parameter.name in chosen:
                alive[parameter.name] = chosen[parameter.name]
    return tuple(found)


def walk(space: SpaceSpec, choose: Callable[[Parameter], FlagValue]) -> dict[str, FlagValue]:
    """Ask `choose` for each active parameter's value, in order; inactive ones are never asked for."""
    chosen: dict[str, FlagValue] = {}
    for parameter in space.parameters:
        if _is_active(parameter, chosen):
            chosen[parameter.name] = choose(parameter)
    return chosen


def domain_values(domain: Domain) -> Sequence[FlagValue] | None:
    """All values of a discrete domain (ranges are not spelled out in memory); None when it is continuous."""
    if isinstance(domain, Choice):
        return domain.values
    if isinstance(domain, IntRange):
        return range(domain.low, domain.high + 1, domain.step)
    return None


def contains(domain: Domain, value: FlagValue) -> bool:
    """Whether the domain can take `value`."""
    if isinstance(domain, Interval):
        return isinstance(value, int | float) and domain.low <= value <= domain.high
    return value in (domain_values(domain) or ())


def describe(domain: Domain) -> str:
    """The domain as a person reads it: `2, 3, 4` or `1 to 9, step 2` or `0.001 to 1 (log)`."""
    if isinstance(domain, Choice):
        return ", ".join(str(value) for value in domain.values)
    if isinstance(domain, IntRange):
        return f"{domain.low} to {domain.high}" + (f", step {domain.step}" if domain.step > 1 else "")
    return f"{domain.low:g} to {domain.high:g}" + (" (log)" if domain.log else "")


def grid(space: SpaceSpec) -> Iterator[dict[str, FlagValue]]:
    """All combinations of a discrete space, the last parameter varying fastest; each once.

    Raises ValueError that names the first continuous parameter, when there is one.
    """
    for parameter in space.parameters:
        if domain_values(parameter.domain) is None:
            raise ValueError(f"{parameter.name} is an interval: its values cannot all be listed")
    return _combinations(space.parameters, {})


def samples(space: SpaceSpec, count: int) -> Iterator[dict[str, FlagValue]]:
    """`count` configurations, drawn at random but the same each time; of an interval only the two ends."""
    drawn = random.Random(0)

    def pick(parameter: Parameter) -> FlagValue:
        domain = parameter.domain
        return drawn.choice(
            (domain.low, domain.high) if isinstance(domain, Interval) else domain_values(domain) or ()
        )

    return (walk(space, pick) for _ in range(count))


def num_combinations(space: SpaceSpec) -> int | None:
    """How many dictionaries `grid` yields, without making them; None for a continuous space.

    Ways are counted per state, parameter by parameter. A state holds only what later conditions still ask
    for, so independent parameters multiply and a range of a million values costs no more than one of three.
    """
    ways: Counter[frozenset[tuple[str, object]]] = Counter({frozenset(): 1})
    for index, parameter in enumerate(space.parameters):
        options = _options(parameter, space.parameters)
        if options is None:
            return None
        needed = {name for later in space.parameters[index + 1 :] for name in later.when}
        following: Counter[frozenset[tuple[str, object]]] = Counter()
        for state, count in ways.items():
            chosen = dict(state)
            kept = {name: value for name, value in chosen.items() if name in needed}
            for value, times in options if _is_active(parameter, chosen) else [(None, 1)]:
                told = {parameter.name: value} if value is not None and parameter.name in needed else {}
                following[frozenset((kept | told).items())] += count * times
        ways = following
    return ways.total()


def to_config(base: ServerConfig, values: Mapping[str, FlagValue], space: SpaceSpec) -> ServerConfig:
    """`base` with `values` set, as flags or environment variables; False leaves a flag away altogether.

    Raises ValueError when `values` names something that is not a parameter of the space.
    """
    flags, env = dict(base.flags), dict(base.env)
    is_env = {parameter.name: parameter.is_env for parameter in space.parameters}
    for name, value in values.items():
        if name not in is_env:
            raise ValueError(f"{name!r} is not a parameter of the space; it has {', '.join(is_env)}")
        if is_env[name]:
            env[name] = str(value)
        else:
            flags[name] = value
    return ServerConfig(flags={name: value for name, value in flags.items() if value is not False}, env=env)


def _is_active(parameter: Parameter, chosen: Mapping[str, object]) -> bool:
    """Whether the conditions hold; `chosen` has values of active parameters only."""
    return all(name in chosen and chosen[name] in allowed for name, allowed in parameter.when.items())


def _combinations(parameters: Sequence[Parameter], chosen: dict[str, FlagValue]) -> Iterator[dict[str, FlagValue]]:
    if not parameters:
        yield chosen
    elif not _is_active(parameters[0], chosen):
        yield from _combinations(parameters[1:], chosen)
    else:
        for value in domain_values(parameters[0].domain) or ():
            yield from _combinations(parameters[1:], {**chosen, parameters[0].name: value})


def _options(parameter: Parameter, parameters: Sequence[Parameter]) -> list[tuple[object, int]] | None:
    """The values that conditions mention, once each, and all others as one; None for an interval."""
    values = domain_values(parameter.domain)
    if values is None:
        return None
    asked = {value for other in parameters for value in other.when.get(parameter.name, ()) if value in values}
    options: list[tuple[object, int]] = [(value, 1) for value in asked]
    if rest := len(values) - len(asked):
        options.append((_OTHER, rest))
    return options
