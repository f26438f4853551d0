"""The search space as the sampler sees it: parameters with listed values, conditions, and a canonical form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Value = str | int | float | bool
Config = Mapping[str, Value]


def unchanged(config: Config) -> Config | None:
    """The canonical form in a space where every configuration is legal and none equals another."""
    return config


def position(value: object, values: tuple[Value, ...]) -> int:
    """The index of a value among listed ones, -1 if it is none of them. True is not 1, but 1 is 1.0."""
    for index, listed in enumerate(values):
        if listed == value and isinstance(listed, bool) == isinstance(value, bool):
            return index
    return -1


@dataclass(frozen=True)
class SearchParameter:
    """One parameter of the server.

    values: what it may take; the first is taken for the server's own default where `Roles.default` names no
    other. ordered: neighbours in `values` behave alike, so that what is learnt of one says something of the
    next. when: the values that earlier parameters must have for this one to exist.

    Raises ValueError when there is no value, or one twice.
    """

    name: str
    values: tuple[Value, ...]
    ordered: bool = False
    when: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"{self.name}: a parameter needs at least one value")
        twice = [value for index, value in enumerate(self.values) if position(value, self.values) != index]
        if twice:
            raise ValueError(f"{self.name}: {twice[0]!r} is listed twice")


@dataclass(frozen=True)
class SearchSpace:
    """All parameters, and what makes two configurations the same.

    parameters: in an order in which conditions look backwards only.
    normal: the canonical form of a configuration (active parameters only), None if it is illegal. Two
    configurations
        with equal canonical forms are one. It may be slow: it is called for configurations about to be
        proposed, and its answers are kept.

    Raises ValueError with all mistakes: a name twice, a condition on something that does not come earlier.
    """

    parameters: tuple[SearchParameter, ...]
    normal: Callable[[Config], Config | None] = unchanged

    def __post_init__(self) -> None:
        counts = Counter(parameter.name for parameter in self.parameters)
        mistakes = [f"{name}: declared {count} times" for name, count in counts.items() if count > 1]
        earlier: set[str] = set()
        for parameter in self.parameters:
            mistakes += [
                f"{parameter.name}: depends on {name}, which is not declared before it"
                for name in parameter.when
                if name not in earlier
            ]
            earlier.add(parameter.name)
        if mistakes:
            raise ValueError("; ".join(mistakes))

    def active(self, values: Config) -> Config:
        """The configuration made of those `values` whose parameters exist, in the order of the space.

        A parameter exists when every one that it depends on exists and has a value that it asks for.
        """
        chosen: dict[str, Value] = {}
        for parameter in self.parameters:
            if parameter.name in values and exists(parameter, chosen):
                chosen[parameter.name] = values[parameter.name]
        return chosen

    def is_complete(self, config: Config) -> bool:
        """Whether every parameter that exists has a value."""
        return all(p.name in config for p in self.parameters if exists(p, config))


def exists(parameter: SearchParameter, chosen: Config) -> bool:
    """Whether a parameter's conditions hold; `chosen` has values of parameters that exist themselves."""
    return all(name in chosen and position(chosen[name], allowed) >= 0 for name, allowed in parameter.when.items())
