"""The true best configuration of a server, found by trying all of them, and kept in a cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tests.bench.search.simulator.configurations import Config, Value, all_flags
from tests.bench.search.simulator.drafters import VERSION, cache_folder, store


@dataclass(frozen=True)
class Optimum:
    """The best there is. throughput: tok/s, without noise."""

    config: dict[str, Value]
    throughput: float


def find_optimum(name: str, best_under: Callable[[Config], Optimum | None]) -> Optimum:
    """The best over all settings of the flags.

    best_under: the best tree, or the baseline, under complete flags; None if nothing starts.
    name: tells this server from all others, for the cache.
    """
    path = cache_folder() / f"optimum-{VERSION}-{name}.json"
    if not path.exists():
        found = [optimum for flags in all_flags() if (optimum := best_under(flags))]
        best = max(found, key=lambda optimum: optimum.throughput)
        store(path, json.dumps({"config": best.config, "throughput": best.throughput}).encode())
    return _read(path.read_text())


@lru_cache
def _read(text: str) -> Optimum:
    return Optimum(**json.loads(text))
