"""Which configurations are legal, and which of them are already taken."""

from __future__ import annotations

from collections.abc import Iterable

from sweeper.samplers.physics.space import Config, SearchSpace

Key = tuple[tuple[str, str], ...]


class Rulebook:
    """The space's own rules, each configuration asked about once."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._known: dict[Key, Key | None] = {}

    def key(self, config: Config) -> Key | None:
        """What two configurations that are one have in common; None for an illegal one."""
        spelled = _spell(config)
        if spelled not in self._known:
            normal = self._space.normal(config)
            self._known[spelled] = None if normal is None else _spell(normal)
        return self._known[spelled]

    def key_of_whole(self, values: Config) -> Key | None:
        """The same for whatever was suggested; None also for what is no whole configuration of the space."""
        config = self._space.active(values)
        return self.key(config) if self._space.is_complete(config) else None


class Ledger:
    """What has been tried, is being tried, or waits."""

    def __init__(self, rules: Rulebook, configs: Iterable[Config], taken: Iterable[Key | None] = ()) -> None:
        """configs: whatever was suggested; what is no whole configuration of the space is left out.

        taken: keys of others, which are known already.
        """
        self._rules = rules
        self._taken = {*taken, *(rules.key_of_whole(config) for config in configs)}

    def is_free(self, config: Config) -> bool:
        """Whether the configuration is legal and nobody has taken it."""
        key = self._rules.key(config)
        return key is not None and key not in self._taken


def _spell(config: Config) -> Key:
    return tuple(sorted((name, repr(value)) for name, value in config.items()))
