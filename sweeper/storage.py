"""The study on disk: Optuna's storage for summaries, Optuna's artifact store for raw requests and logs.

Everything specsweep knows about a trial can be read from here, by later processes and by analysis. An artifact is
written before the record that names it, so a record never points to nothing.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.artifacts import FileSystemArtifactStore
from optuna.artifacts.exceptions import ArtifactNotFound
from optuna.trial import FrozenTrial
from sqlalchemy.exc import SQLAlchemyError

from sweeper.errors import ConfigError
from sweeper.later_launches import lean_backend
from sweeper.lean_storage import LeanStorage
from sweeper.records import LaunchRecord, TrialRecord, launch_artifact_name
from sweeper.saved_launch import LAUNCH
from sweeper.trial_reading import TrialReader

STORAGE_ERRORS = (SQLAlchemyError, optuna.exceptions.StorageInternalError)
"""What a storage that is full, locked or gone raises in the middle of a sweep."""


class StudyStore:
    """One study: its trials as records, its artifacts, and named JSON facts about the whole of it."""

    def __init__(self, study: optuna.Study, artifact_dir: Path) -> None:
        self.optuna = study
        self.name = study.study_name
        self._artifact_dir = artifact_dir
        self._artifacts = FileSystemArtifactStore(artifact_dir)
        self._lean = lean_backend(study)
        self._reader = TrialReader(study)

    @classmethod
    def open(cls, storage_url: str, name: str, directory: str, *, create: bool) -> StudyStore:
        """The study `name`, made if absent and `create`.

        Raises ConfigError when the storage cannot be opened or holds no such study.
        """
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        artifact_dir = Path(directory) / "artifacts" / name
        plain = optuna.samplers.RandomSampler()
        try:
            if create:
                artifact_dir.mkdir(parents=True, exist_ok=True)
                _make_sqlite_dir(storage_url)
            elif (file := _sqlite_file(storage_url)) is not None and not file.exists():
                raise ConfigError(
                    [f"study.storage: {_masked(storage_url)!r} does not exist; is `study.dir` right?"]
                )
            storage = LeanStorage(storage_url, _engine_settings(storage_url))
            if create:
                study = optuna.create_study(
                    study_name=name, storage=storage, sampler=plain, direction="maximize", load_if_exists=True
                )
            else:
                study = optuna.load_study(study_name=name, storage=storage, sampler=plain)
        except KeyError:
            names = ", ".join(sorted(optuna.get_all_study_names(storage))) or "none yet"
            raise ConfigError([f"study.name: {name!r} is not in this storage; its studies: {names}"]) from None
        except (SQLAlchemyError, OSError, RuntimeError, ImportError, ValueError) as error:
            reason = str(error).splitlines()[0][:200]
            raise ConfigError([f"study.storage: {_masked(storage_url)!r} cannot be opened: {reason}"]) from error
        return cls(study, artifact_dir)

    def with_sampler(self, sampler: optuna.samplers.BaseSampler) -> optuna.Study:
        """The same study as seen by a search; `optuna` itself only ever reads and keeps books."""
        return optuna.load_study(study_name=self.name, storage=self.optuna._storage, sampler=sampler)

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every distinct trial in order of its number; launches of it oldest first."""
        return self._reader.trials()

    def save_launch(self, record: LaunchRecord, artifacts: Mapping[str, bytes]) -> LaunchRecord:
        """Write the artifacts, then the record. Saving a launch again replaces it. Returns the record."""
        names = []
        for name, content in artifacts.items():
            full = launch_artifact_name(record.launch_number, name)
            self._artifacts.write(self._artifact_id(record.trial_number, full), io.BytesIO(content))
            names.append(full)
        data = {"record": json.loads(record.model_dump_json()), "artifacts": names}
        trial = self.frozen(record.trial_number)
        storage, key = self.optuna._storage, f"{LAUNCH}{record.launch_number}"
        if trial.state.is_finished():
            self.optuna.set_user_attr(f"{LAUNCH}{record.trial_number}:{record.launch_number}", data)
        else:
            storage.set_trial_user_attr(trial._trial_id, key, data)
        return record

    def artifact(self, trial_number: int, name: str) -> bytes:
        """The content of an artifact. Raises KeyError when there is none of that name."""
        try:
            with self._artifacts.open_reader(self._artifact_id(trial_number, name)) as reader:
                return bytes(reader.read())
        except (ArtifactNotFound, OSError):
            raise KeyError(f"trial {trial_number} has no artifact {name!r}") from None

    def fact(self, name: str) -> Any:  # noqa: ANN401  (JSON)
        """A JSON value kept about the whole study; None when there is none."""
        if self._lean is None:
            return self.optuna.user_attrs.get(name)
        return self._lean.study_attr(self.optuna._study_id, name)

    def set_fact(self, name: str, value: Any) -> None:  # noqa: ANN401  (JSON)
        """Keep a JSON value about the whole study."""
        self.optuna.set_user_attr(name, value)

    def frozen(self, trial_number: int) -> FrozenTrial:
        """Optuna's own view of a trial. Raises KeyError for an unknown number."""
        storage = self.optuna._storage
        trial_id = storage.get_trial_id_from_study_id_trial_number(self.optuna._study_id, trial_number)
        return storage.get_trial(trial_id)

    def _artifact_id(self, trial_number: int, name: str) -> str:
        return f"trial-{trial_number}-{name}"


def _sqlite_file(url: str) -> Path | None:
    prefix, _, path = url.partition(":///")
    return Path(path) if prefix.startswith("sqlite") and path else None


def _make_sqlite_dir(url: str) -> None:
    if (file := _sqlite_file(url)) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)


def _engine_settings(url: str) -> dict[str, Any]:
    """SQLite waits for a lock instead of failing at once; a server connection is checked before use."""
    return {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {"pool_pre_ping": True}


def _masked(url: str) -> str:
    """The URL without its password."""
    head, at, tail = url.rpartition("@")
    return f"{head.split('://')[0]}://***@{tail}" if at else url
