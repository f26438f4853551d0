"""The configurations that may become trials: legal by the engine's rules, and distinct after its rewrites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from sweeper.errors import ConfigError
from sweeper.samplers.distinct import Choose, Values
from sweeper.samplers.encoding import OptunaValue, decode, distribution, encode, optuna_name
from sweeper.space import grid, num_combinations, to_config, walk
from sweeper.spec import FlagValue, ServerConfig, SpaceSpec

ENUMERABLE = 20_000
"""Spaces with more combinations than this are not enumerated; whether anything is left in them is then unknown."""


_MAX_REASONS = 5


@dataclass(frozen=True)
class Candidates:
    """A search space under an engine's rules. `base` holds the flags and environment that every launch gets."""

    space: SpaceSpec
    base: ServerConfig
    canonical: Callable[[ServerConfig], ServerConfig]
    violations: Callable[[ServerConfig], list[str]]

    def propose(self, choose: Choose) -> Values:
        """Walk the space, asking `choose` for each active parameter; the study's values by the study's names."""
        values: Values = {}

        def pick(name: str, value: OptunaValue) -> OptunaValue:
            values[name] = value
            return value

        self.values(lambda name, dist: pick(name, choose(name, dist)))
        return values

    def values(self, choose: Choose) -> dict[str, FlagValue]:
        """The flags' own values for what `choose` answers, for active parameters only."""
        return walk(self.space, lambda p: decode(p, choose(optuna_name(p), distribution(p))))

    def requested(self, flags: Mapping[str, FlagValue]) -> ServerConfig:
        """The configuration in which the searched parameters have these values."""
        return to_config(self.base, flags, self.space)

    def key(self, values: Mapping[str, OptunaValue]) -> str | None:
        """The key of the configuration that these (study's) values stand for; None when it is illegal."""
        flags = self.values(lambda name, _: values[name])
        config = self.canonical(self.requested(flags))
        return None if self.violations(config) else config.key()

    @cached_property
    def enumerated(self) -> Mapping[str, Values] | None:
        """Every legal, distinct configuration: key to the study's values. None when there are too many."""
        count = num_combinations(self.space)
        if count is None or count > ENUMERABLE:
            return None
        found: dict[str, Values] = {}
        for flags in grid(self.space):
            values = {optuna_name(p): encode(p, flags[p.name]) for p in self.space.parameters if p.name in flags}
            key = self.key(values)
            if key is not None:
                found.setdefault(key, values)
        return found

    def require_any(self) -> None:
        """Raises ConfigError, with the reasons, when not one configuration of a listed space is legal."""
        if self.enumerated is None or self.enumerated:
            return
        reasons: Counter[str] = Counter()
        for flags in grid(self.space):
            reasons.update(set(self.violations(self.canonical(self.requested(flags)))))
        count = num_combinations(self.space)
        told = [f"{reason} ({times} of them)" for reason, times in reasons.most_common(_MAX_REASONS)]
        raise ConfigError([f"space: none of the {count} combinations is legal: {reason}" for reason in told])

    def untried(self, tried: Collection[str]) -> list[Values]:
        """Untried, legal configurations as the study's values; empty also when they cannot be enumerated."""
        return [values for key, values in (self.enumerated or {}).items() if key not in tried]

    def anything_left(self, tried: Collection[str]) -> bool:
        """Whether an untried, legal configuration exists; True when that is unknown."""
        return self.enumerated is None or any(key not in tried for key in self.enumerated)
