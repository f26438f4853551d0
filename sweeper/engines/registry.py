"""The engines by name. To add one: its module or package beside this one, and conf/engine/NAME.yaml.

It is called after the engine, without an underscore, and names its class `ENGINE`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from sweeper import engines
from sweeper.engines.base import Engine, HostFacts, Speculation
from sweeper.spec import ServerConfig


def _found() -> Iterator[type[Engine]]:
    """The classes that modules and packages of this package name `ENGINE`."""
    for module in pkgutil.iter_modules(engines.__path__):
        if "_" not in module.name and module.name != "registry":
            yield from filter(None, [vars(import_module(f"{engines.__name__}.{module.name}")).get("ENGINE")])


_ENGINES: Mapping[str, Callable[[], Engine]] = {engine.name: engine for engine in _found()}

ENGINE_NAMES: tuple[str, ...] = tuple(sorted(_ENGINES))


def engine_for(name: str) -> Engine:
    """The engine called `name`. Raises ValueError that lists the valid names."""
    if name not in _ENGINES:
        raise ValueError(f"unknown engine {name!r}; valid: {', '.join(ENGINE_NAMES)}")
    return _ENGINES[name]()


def roles_of(name: str) -> Speculation | None:
    """Which flags of an engine shape its drafts; None where that, or the engine, is not known."""
    return engine_for(name).speculation() if name in _ENGINES else None


def simplicity_of(name: str) -> Callable[[ServerConfig], tuple[float, ...]]:
    """The engine's `simplicity`. Raises ValueError for an unknown engine."""
    return engine_for(name).simplicity


def speculates_of(name: str) -> Callable[[ServerConfig], bool]:
    """The engine's `is_speculative`. Raises ValueError for an unknown engine."""
    return engine_for(name).is_speculative


def canonical_as_told(name: str) -> Callable[[ServerConfig], ServerConfig]:
    """How an engine rewrites a configuration that somebody else measured, as far as that is told.

    Of what the engine would fill in, only the number of draft tokens is taken over, which follows from the steps
    of a chain: nobody knows what else was set.
    """
    engine = engine_for(name)
    roles = engine.speculation()
    filled = frozenset({roles.draft_tokens} if roles else ())

    def canonical(config: ServerConfig) -> ServerConfig:
        resolved = engine.canonical(config, HostFacts())
        asked = config.flags.keys() | filled
        flags = {flag: value for flag, value in resolved.flags.items() if flag in asked}
        return ServerConfig(flags=flags, env=resolved.env)

    return canonical
