"""The engines by name. To add one: its module, a line here and conf/engine/NAME.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sweeper.engines.base import Engine, Speculation
from sweeper.engines.foreign import FOREIGN, is_speculative, simplicity
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.sglang import SGLang
from sweeper.spec import ServerConfig

_ENGINES: Mapping[str, Callable[[], Engine]] = {LlamaCpp.name: LlamaCpp, SGLang.name: SGLang}

ENGINE_NAMES: tuple[str, ...] = tuple(sorted(_ENGINES))


def engine_for(name: str) -> Engine:
    """The engine called `name`. Raises ValueError that lists the valid names."""
    if name not in _ENGINES:
        raise ValueError(f"unknown engine {name!r}; valid: {', '.join(ENGINE_NAMES)}")
    return _ENGINES[name]()


def roles_of(name: str) -> Speculation | None:
    """Which flags of an engine shape its drafts, also of one that is only imported; None where not known."""
    return engine_for(name).speculation() if name in _ENGINES else FOREIGN.get(name)


def simplicity_of(name: str) -> Callable[[ServerConfig], tuple[float, ...]]:
    """The engine's `simplicity`, also of one that is only imported. Raises ValueError for an unknown engine."""
    if (roles := FOREIGN.get(name)) is not None:
        return lambda config: simplicity(config, roles)
    return engine_for(name).simplicity


def speculates_of(name: str) -> Callable[[ServerConfig], bool]:
    """The engine's `is_speculative`, also of one that is only imported.

    Raises ValueError for an unknown engine.
    """
    if (roles := FOREIGN.get(name)) is not None:
        return lambda config: is_speculative(config, roles)
    return engine_for(name).is_speculative
