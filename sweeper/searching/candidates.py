"""The configurations that may become trials: legal by the engine's rules, and distinct after its rewrites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from optuna.distributions import BaseDistribution

from sweeper.errors import ConfigError
from sweeper.samplers.distinct import Choose, Values
from sweeper.samplers.encoding import OptunaValue, decode, distribution, encode, optuna_name
from sweeper.space import domain_values, grid, num_combinations, to_config, walk
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

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """Every parameter's distribution under the study's names, whether it is always active or not."""
        return {optuna_name(p): distribution(p) for p in self.space.parameters}

    def key(self, values: Mapping[str, OptunaValue]) -> str | None:
        """The key of the configuration that these (study's) values stand for; None when it is illegal."""
        flags = self.values(lambda name, _: values[name])
        config = self.canonical(self.requested(flags))
        return None if self.violations(config) else config.key()

    @cached_property
    def enumerated(self) -> Mapping[str, Values] | None:
        """Every legal, distinct configuration: key to the study's values. None when there are too many."""
        return None if self._walked is None else self._walked[0]

    @cached_property
    def _walked(self) -> tuple[Mapping[str, Values], frozenset[tuple[str, OptunaValue]]] | None:
        """The legal, distinct configurations, and every value that any legal one has."""
        count = num_combinations(self.space)
        if count is None or count > ENUMERABLE:
            return None
        found: dict[str, Values] = {}
        used: set[tuple[str, OptunaValue]] = set()
        for flags in grid(self.space):
            values = {optuna_name(p): encode(p, flags[p.name]) for p in self.space.parameters if p.name in flags}
            key = self.key(values)
            if key is not None:
                found.setdefault(key, values)
                used.update(values.items())
        return found, frozenset(used)

    def require_any(self, speculates: Callable[[ServerConfig], bool]) -> None:
        """Raises ConfigError, with the reasons, when no configuration of a listed space is legal.

        Nor may all that speculate be illegal: the rest would be a night without what was asked about.
        """
        if self.enumerated is None:
            return
        asked: list[ServerConfig] = []
        reasons: Counter[str] = Counter()
        for flags in grid(self.space):
            config = self.requested(flags)
            if not speculates(config):
                continue
            broken = self.violations(self.canonical(config))
            if not broken:
                return
            asked.append(config)
            reasons.update(set(broken))
        if not asked and self.enumerated:
            return
        which = (
            f"{len(asked)} speculative combinations" if asked else f"{num_combinations(self.space)} combinations"
        )
        told = [f"{reason} ({times} of them)" for reason, times in reasons.most_common(_MAX_REASONS)]
        raise ConfigError([f"space: none of the {which} is legal: {reason}" for reason in told])

    def never_legal(self) -> list[str]:
        """Each value of a listed space that no legal configuration has, one line each."""
        if self._walked is None:
            return []
        return [
            f"{p.name}: {value!r} is never legal here: no configuration with it is tried"
            for p in self.space.parameters
            for value in domain_values(p.domain) or ()
            if (optuna_name(p), encode(p, value)) not in self._walked[1]
        ]

    def untried(self, tried: Collection[str]) -> list[Values]:
        """Untried, legal configurations as the study's values; empty also when they cannot be enumerated."""
        return [values for key, values in (self.enumerated or {}).items() if key not in tried]

    def anything_left(self, tried: Collection[str]) -> bool:
        """Whether an untried, legal configuration exists; True when that is unknown."""
        return self.enumerated is None or any(key not in tried for key in self.enumerated)
