"""Two studies of one name in one folder, each in a database of its own, keep what each has measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.storing.artifact_place import OWNER, claimed, folder_of
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_facts import identity_of
from tests.fakes import launch

pytestmark = pytest.mark.study


def opened(folder: Path, database: str) -> StudyStore:
    return StudyStore.open(f"sqlite:///{folder}/{database}.db", "night", str(folder), create=True)


def measured(store: StudyStore, log: bytes) -> None:
    """A first launch of trial 0."""
    identity_of(store)
    store.optuna.ask()
    store.save_launch(launch(50.0), {"server.log": log})


def test_of_two_studies_of_one_name_neither_writes_over_the_other_s_artifacts(tmp_path: Path) -> None:
    measured(opened(tmp_path, "a"), b"of a")
    measured(opened(tmp_path, "b"), b"of b")
    for database in "ab":
        assert opened(tmp_path, database).artifact(0, "launch-0-server.log") == f"of {database}".encode()
    second = f"night-{identity_of(opened(tmp_path, 'b'))[:6]}"
    assert sorted(path.name for path in (tmp_path / "artifacts").iterdir()) == ["night", second]


def test_a_folder_that_nobody_has_signed_is_the_study_s(tmp_path: Path) -> None:
    store = opened(tmp_path, "a")
    measured(store, b"a log")
    (tmp_path / "artifacts" / "night" / OWNER).unlink()
    assert opened(tmp_path, "a").artifact(0, "launch-0-server.log") == b"a log"
    measured(store, b"more")
    assert (tmp_path / "artifacts" / "night" / OWNER).read_text() == identity_of(store)


def test_a_signature_that_cannot_be_read_is_somebody_else_s(tmp_path: Path) -> None:
    folder = claimed(tmp_path / "night", "aaaaaaaa")
    (folder / OWNER).write_bytes(b"\xff\x00")
    assert folder_of(tmp_path / "night", "bbbbbbbb") == tmp_path / "night-bbbbbb"
