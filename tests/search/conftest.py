"""A small simulated server, built once, whose tables never reach the user's own cache."""

from __future__ import annotations

from collections.abc import Iterator

import optuna
import pytest

from tests.bench.search.simulator import Surface, surface

NUM_ROUNDS = 200


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def server(_own_cache: None) -> Surface:
    """Dense 8B on one GPU with a strong drafter."""
    return surface(2, num_rounds=NUM_ROUNDS)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
