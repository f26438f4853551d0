from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.fleet.postgres import Cluster, cluster, programs

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """One server for all tests."""
    if programs() is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    with cluster() as made:
        yield made


@pytest.fixture
def database(postgres: Cluster) -> str:
    """The address of an empty database."""
    return postgres.create(f"sweeps_{next(_NUMBERS)}")
