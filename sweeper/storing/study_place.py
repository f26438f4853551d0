"""Where a study is: opens its database as Optuna's study, and names the folder of its artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import optuna
import sqlalchemy
from sqlalchemy.exc import ArgumentError, ProgrammingError

from sweeper.errors import ConfigError, SpecsweepError, StorageUnusable
from sweeper.storing.addresses import is_misread, is_shared, masked, normal_url, sqlite_file
from sweeper.storing.connecting import engine_settings, prepared
from sweeper.storing.database import Database, FileDatabase, SharedDatabase, being_opened, opened_patiently
from sweeper.storing.lean_storage import STUDIES, LeanStorage
from sweeper.storing.losses import STORAGE_ERRORS, reason_of

_UNUSABLE = (*STORAGE_ERRORS, OSError, RuntimeError, ImportError, ValueError)
"""What opening a storage may raise. The last three tell that something else than asked for is there."""

_WRONGLY_ASKED = (
    *(ArgumentError, ProgrammingError),
    *(FileNotFoundError, NotADirectoryError, FileExistsError, IsADirectoryError, PermissionError),
)
"""An option that there is none of, a role that may not do it; a place that is none, or somebody else's."""


@dataclass(frozen=True)
class Place:
    """Where a sweep keeps what is not in its database: its folder, or another one for artifacts.

    `reconnect_s`: how long a lost connection to a shared database is tried again.
    """

    folder: str
    artifacts: str = ""
    reconnect_s: float = 300.0

    def artifacts_of(self, study: str) -> Path:
        """The folder of a study's artifacts."""
        return Path(self.artifacts or Path(self.folder) / "artifacts") / study


def open_optuna(storage_url: str, name: str, place: Place, *, create: bool) -> tuple[optuna.Study, Database]:
    """The study `name` with a sampler that is never asked, made if absent and `create`; and its database.

    Raises ConfigError when it holds no such study, or nothing that specsweep can use; StorageUnusable when it
    cannot be opened.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = _usable_url(storage_url)
    try:
        if create:
            place.artifacts_of(name).mkdir(parents=True, exist_ok=True)
            _make_sqlite_dir(url)
        elif (file := sqlite_file(url)) is not None and not file.exists():
            raise ConfigError([f"study.storage: {masked(url)!r} does not exist; is `study.dir` right?"])
        return opened_patiently(lambda: _opened_alone(url, name, place, create=create), place.reconnect_s)
    except _UNUSABLE as error:
        raise _unusable(url, error) from error


def open_each(storage_url: str, place: Place) -> list[tuple[optuna.Study, Database]]:
    """Every study of a storage, which must exist, through one connection. Raises as `open_optuna`."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = _usable_url(storage_url)
    try:
        if (file := sqlite_file(url)) is not None and not file.exists():
            raise ConfigError([f"study.storage: {masked(url)!r} does not exist; is `study.dir` right?"])
        with being_opened(url):
            storage = LeanStorage.opened(url, engine_settings(url))
        if is_shared(url):
            prepared(storage.engine).dispose()
        plain = optuna.samplers.RandomSampler()
        names = _names(storage.engine)  # Optuna would read all launches that are kept with the studies
        studies = [optuna.load_study(study_name=name, storage=storage, sampler=plain) for name in names]
    except _UNUSABLE as error:
        raise _unusable(url, error) from error
    return [(study, _database(storage, study.study_name, place.reconnect_s)) for study in studies]


def _usable_url(storage_url: str) -> str:
    """The address as SQLAlchemy takes it. Raises ConfigError for one that it would take for another."""
    if is_misread(storage_url):
        instead = "write it as %40, or leave the password to PGPASSWORD or ~/.pgpass"
        raise ConfigError([f"study.storage: {masked(storage_url)!r}: the password holds an @: {instead}"])
    return normal_url(storage_url)


def _unusable(url: str, error: BaseException) -> SpecsweepError:
    """The message for what was raised while a storage was opened."""
    told = f"study.storage: {masked(url)!r} cannot be opened: {reason_of(error)}"
    is_fault = isinstance(error, (*STORAGE_ERRORS, OSError)) and not isinstance(error, _WRONGLY_ASKED)
    return StorageUnusable(told) if is_fault else ConfigError([told])


def _database(storage: LeanStorage, name: str, reconnect_s: float) -> Database:
    is_here = not is_shared(str(storage.engine.url))
    return FileDatabase() if is_here else SharedDatabase(storage.engine, name, reconnect_s)


def _opened_alone(url: str, name: str, place: Place, *, create: bool) -> tuple[optuna.Study, Database]:
    """As `_opened`, while nobody else makes tables there."""
    with being_opened(url):
        return _opened(url, name, place.reconnect_s, create=create)


def _opened(url: str, name: str, reconnect_s: float, *, create: bool) -> tuple[optuna.Study, Database]:
    """The study and its database. Raises ConfigError for one that is not there, else what Optuna raises."""
    plain = optuna.samplers.RandomSampler()
    storage = LeanStorage.opened(url, engine_settings(url))
    if is_shared(url):
        prepared(storage.engine).dispose()  # what Optuna connected by so far has no timeouts
    try:
        if create:
            study = optuna.create_study(
                study_name=name, storage=storage, sampler=plain, direction="maximize", load_if_exists=True
            )
        else:
            study = optuna.load_study(study_name=name, storage=storage, sampler=plain)
    except KeyError:
        names = ", ".join(sorted(optuna.get_all_study_names(storage))) or "none yet"
        storage.engine.dispose()
        raise ConfigError([f"study.name: {name!r} is not in this storage; its studies: {names}"]) from None
    return study, _database(storage, name, reconnect_s)


def _make_sqlite_dir(url: str) -> None:
    if (file := sqlite_file(url)) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)


def study_names(storage_url: str) -> list[str]:
    """The studies of a storage, oldest first; none where there is no such file. Nothing is made.

    Raises as `open_optuna`.
    """
    url = _usable_url(storage_url)
    if (file := sqlite_file(url)) is not None and not file.exists():
        return []
    try:
        engine = sqlalchemy.create_engine(url, **engine_settings(url))
        try:
            if not sqlalchemy.inspect(engine).has_table(STUDIES.name):
                return []
            return _names(engine)
        finally:
            engine.dispose()
    except _UNUSABLE as error:
        raise _unusable(url, error) from error


def _names(engine: sqlalchemy.Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.scalars(sqlalchemy.select(STUDIES.c.study_name).order_by(STUDIES.c.study_id)))
