"""Tables that are as Optuna makes them are taken as they are; all others are looked at by Optuna itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy
from optuna.storages import RDBStorage

from sweeper.errors import ConfigError
from sweeper.storing.lean_storage import HEAD, LeanStorage
from sweeper.storing.storage import StudyStore

pytestmark = pytest.mark.study


@pytest.fixture
def address(tmp_path: Path) -> str:
    StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", "night", str(tmp_path), create=True)
    return f"sqlite:///{tmp_path}/optuna.db"


def test_the_version_is_the_one_of_the_installed_optuna(address: str) -> None:
    storage = RDBStorage(address)
    assert storage.get_head_version() == storage.get_current_version() == HEAD


def test_what_is_taken_as_it_is_has_all_that_optuna_gives_a_storage(address: str) -> None:
    quick, whole = LeanStorage.opened(address, {}), LeanStorage(address, {})
    assert vars(whole).keys() - vars(quick).keys() == {"_version_manager"}
    different = {name for name, value in vars(quick).items() if vars(whole)[name] != value}
    assert different == {"engine", "scoped_session", "skip_compatibility_check"}
    assert quick.get_study_id_from_name("night") == whole.get_study_id_from_name("night")


def test_tables_of_another_version_are_refused_by_optuna(address: str, tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = 'v2.4.0.a'"))
    engine.dispose()
    with pytest.raises(ConfigError, match=r"cannot be opened: The runtime optuna version"):
        StudyStore.open(address, "night", str(tmp_path), create=False)


def test_a_storage_without_tables_gets_them(tmp_path: Path) -> None:
    storage = LeanStorage.opened(f"sqlite:///{tmp_path}/new.db", {})
    assert storage.get_all_studies() == []
    assert storage.get_current_version() == HEAD
