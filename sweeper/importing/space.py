"""The space that imported configurations span: what they have in common, and what differs among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.engines.base import Speculation
from sweeper.spec import Choice, FlagValue, Parameter, ServerConfig, SpaceSpec

NONE = "none"
"""The algorithm of a configuration that has none, as spaces write it."""


@dataclass(frozen=True)
class Spanned:
    """`base`: flags and environment of every configuration. `space`: what differs, each value that was seen."""

    base: ServerConfig
    space: SpaceSpec

    def values(self, config: ServerConfig) -> dict[str, FlagValue]:
        """A configuration's values of the parameters that it has."""
        found: dict[str, FlagValue] = {}
        for parameter in self.space.parameters:
            exists = all(config.flags.get(name) in values for name, values in parameter.when.items())
            value = _value(config, parameter) if exists else None
            if value is not None:
                found[parameter.name] = value
        return found


def spanned(configs: Sequence[ServerConfig], drafting: Sequence[bool], roles: Speculation | None) -> Spanned:
    """The space of these configurations, of which some draft. The algorithm is always a parameter, where known.

    A flag that only drafting configurations have exists only under their algorithms.
    Left away, a bare flag is false.
    """
    algorithm = roles.algorithm if roles else ""
    plain = [config for config, drafts in zip(configs, drafting, strict=True) if not drafts]
    common = _common(configs, algorithm)
    parameters = []
    if algorithm:
        names = dict.fromkeys(str(config.flags.get(algorithm, NONE)) for config in configs)
        parameters.append(Parameter(name=algorithm, domain=Choice(values=tuple(names))))
    algorithms = tuple(name for name in parameters[0].domain.values if name != NONE) if parameters else ()  # type: ignore[union-attr]
    for name in dict.fromkeys(name for config in configs for name in config.flags):
        if name == algorithm or name in common.flags:
            continue
        only = bool(algorithms) and not any(name in config.flags for config in plain)
        when = {algorithm: algorithms} if only and (plain or _is_missing(name, configs)) else {}
        having = [c for c, drafts in zip(configs, drafting, strict=True) if drafts or not when]
        parameters.append(Parameter(name=name, domain=Choice(values=_seen(name, having)), when=when))
    for name in dict.fromkeys(name for config in configs for name in config.env if name not in common.env):
        values = tuple(dict.fromkeys(config.env[name] for config in configs if name in config.env))
        parameters.append(Parameter(name=name, domain=Choice(values=values), is_env=True))
    return Spanned(common, SpaceSpec(parameters=tuple(parameters) or (_only(common),)))


def _only(common: ServerConfig) -> Parameter:
    """A space needs a parameter; of a single configuration it is one of its own flags."""
    name, value = next(iter(common.flags.items()), ("imported", True))
    return Parameter(name=name, domain=Choice(values=(value,)))


def _common(configs: Sequence[ServerConfig], algorithm: str) -> ServerConfig:
    """What every configuration has alike."""
    first = configs[0]
    flags = {n: v for n, v in first.flags.items() if n != algorithm and all(c.flags.get(n) == v for c in configs)}
    env = {n: v for n, v in first.env.items() if all(c.env.get(n) == v for c in configs)}
    return ServerConfig(flags=flags, env=env)


def _is_missing(name: str, configs: Sequence[ServerConfig]) -> bool:
    return any(name not in config.flags for config in configs)


def _seen(name: str, configs: Sequence[ServerConfig]) -> tuple[FlagValue, ...]:
    """The values that a flag has in these configurations."""
    values: list[FlagValue] = [config.flags[name] for config in configs if name in config.flags]
    if _is_missing(name, configs) and all(isinstance(value, bool) for value in values):
        values.insert(0, False)
    distinct: list[FlagValue] = []
    for value in values:
        if value not in distinct:
            distinct.append(value)
    return tuple(distinct)


def _value(config: ServerConfig, parameter: Parameter) -> FlagValue | None:
    """The configuration's value; what a parameter's choice lists for a flag that is left away."""
    settings: Mapping[str, FlagValue] = config.env if parameter.is_env else config.flags
    found = settings.get(parameter.name)
    listed = parameter.domain.values if isinstance(parameter.domain, Choice) else ()
    if found is None:
        return next((v for v in listed if v is False or v == NONE), None)
    return next(value for value in listed if value == found)
