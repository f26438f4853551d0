"""A plan of a study that hosts share: read from a real PostgreSQL, in which nothing is made or changed."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from sweeper.planning.making import plan_of
from sweeper.spec import BudgetSpec, SweepSpec
from sweeper.study_setup import open_study
from tests.core.drafting import BASE, ENGINE, FACTS, SPACE, run
from tests.core.specs import sweep_spec
from tests.fakes import FakeClock

pytestmark = pytest.mark.service

BUDGET = BudgetSpec(trials=6, finalists=1, confirm_launches=0)


def spec_on(database: str, folder: Path) -> SweepSpec:
    spec = sweep_spec("sglang", SPACE, BASE.flags, "random")
    study = spec.study.model_copy(update={"dir": str(folder), "storage": database})
    return spec.model_copy(update={"study": study, "budget": BUDGET})


def rows(database: str) -> dict[str, int]:
    """The tables, and how many rows each has."""
    with psycopg.connect(database.replace("+psycopg", "")) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        counts = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone() for (name,) in names}
    return {name: int(found[0]) for name, found in counts.items() if found is not None}


def test_an_empty_database_stays_empty(database: str, tmp_path: Path) -> None:
    assert plan_of(spec_on(database, tmp_path / "d"), 1, FakeClock()).stands.startswith("new")
    assert rows(database) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_shared_study_goes_on_and_another_host_of_it_may_join(database: str, tmp_path: Path) -> None:
    spec = spec_on(database, tmp_path)
    study, _ = open_study(spec, ENGINE, FACTS)
    run(study, BUDGET.model_copy(update={"trials": 3}))
    before = rows(database)
    found = plan_of(spec, 2, FakeClock())
    assert found.stands.startswith("goes on: 3 of 6 trials done")
    assert [launch.trial for launch in found.launches] == [3, 4]
    there = spec.model_copy(update={"host": spec.host.model_copy(update={"name": "there"})})
    assert plan_of(there, 1, FakeClock()).host == "there"
    assert rows(database) == before
