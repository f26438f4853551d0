"""The statements of docs/fleet.md make a database that its owner can use."""

from __future__ import annotations

import pytest

from tests.docs.pages import blocks
from tests.fleet.postgres import Cluster

pytestmark = pytest.mark.service


def test_the_statements_make_a_role_and_its_database(postgres: Cluster) -> None:
    (block,) = blocks("sql")
    for statement in filter(None, block.text.replace("sweeps", "pages").strip().split(";")):
        postgres.sql(statement)
    owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'pages'"
    assert postgres.sql(owner) == "pages"
