"""The engines by name. To add one: its module, a line here and conf/engine/NAME.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sweeper.engines.base import Engine
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.sglang import SGLang

_ENGINES: Mapping[str, Callable[[], Engine]] = {LlamaCpp.name: LlamaCpp, SGLang.name: SGLang}

ENGINE_NAMES: tuple[str, ...] = tuple(sorted(_ENGINES))


def engine_for(name: str) -> Engine:
    """The engine called `name`. Raises ValueError that lists the valid names."""
    if name not in _ENGINES:
        raise ValueError(f"unknown engine {name!r}; valid: {', '.join(ENGINE_NAMES)}")
    return _ENGINES[name]()
