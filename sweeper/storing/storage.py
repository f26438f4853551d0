"""The study on disk: Optuna's storage for summaries, Optuna's artifact store for raw requests and logs.

Everything specsweep knows about a trial can be read from here, by later processes and by analysis. An artifact is
written before the record that names it, so a record never points to nothing.
"""

from __future__ import annotations

import io
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
from optuna.artifacts import FileSystemArtifactStore
from optuna.artifacts.exceptions import ArtifactNotFound
from optuna.trial import FrozenTrial

from sweeper.errors import SweepAborted
from sweeper.known_secrets import KNOWN
from sweeper.records import LaunchRecord, TrialRecord, launch_artifact_name
from sweeper.secrets import sealed
from sweeper.spec import StudySpec
from sweeper.storing.artifact_place import claimed, folder_of
from sweeper.storing.database import STORAGE_ERRORS as STORAGE_ERRORS
from sweeper.storing.database import Database, FileDatabase, is_lost
from sweeper.storing.later_launches import forget_trials, lean_backend
from sweeper.storing.saved_launch import LAUNCH
from sweeper.storing.study_place import Place, open_each, open_optuna
from sweeper.storing.trial_reading import TrialReader


class StudyStore:
    """One study: its trials as records, its artifacts, and named JSON facts about the whole of it."""

    def __init__(self, study: optuna.Study, artifact_dir: Path, database: Database | None = None) -> None:
        self.optuna = study
        self.name = study.study_name
        self.database: Database = database or FileDatabase()
        self._artifact_dir = artifact_dir
        self._identity = ""
        self._lean = lean_backend(study)
        self._reader = TrialReader(study)
        self._connection = 0

    @classmethod
    def of(cls, spec: StudySpec, *, name: str = "", create: bool = False) -> StudyStore:
        """The study of a configuration, or another one, `name`, beside it. Raises as `open` does."""
        place = Place(spec.dir, spec.artifacts, spec.reconnect_s)
        return cls.open(spec.storage, name or spec.name, place, create=create)

    @classmethod
    def open(cls, storage_url: str, name: str, place: str | Place, *, create: bool) -> StudyStore:
        """The study `name`, made if absent and `create`. `place`: the sweep's folder, or more about it.

        Raises ConfigError when the storage holds no such study, StorageUnusable when it cannot be opened.
        """
        where = Place(place) if isinstance(place, str) else place
        study, database = open_optuna(storage_url, name, where, create=create)
        return cls(study, where.artifacts_of(name), database)

    @classmethod
    def each(cls, spec: StudySpec, storage_url: str) -> list[StudyStore]:
        """Every study of a storage that exists. Raises as `open` does."""
        place = Place(spec.dir, spec.artifacts, spec.reconnect_s)
        opened = open_each(storage_url, place)
        return [cls(study, place.artifacts_of(study.study_name), database) for study, database in opened]

    def with_sampler(self, sampler: optuna.samplers.BaseSampler) -> optuna.Study:
        """The same study as seen by a search; `optuna` itself only ever reads and keeps books."""
        return optuna.load_study(study_name=self.name, storage=self.optuna._storage, sampler=sampler)

    def in_memory(self) -> StudyStore:
        """A copy in which anything may be asked and written: nobody else sees it, and this process forgets it."""
        made = StudyStore.new_in_memory(self.name, self._artifact_dir)
        records = {trial.number: trial for trial in self.trials()}
        for frozen in self.optuna.get_trials(deepcopy=True):
            kept = {name: value for name, value in frozen.user_attrs.items() if not name.startswith(LAUNCH)}
            launches = records[frozen.number].launches if frozen.number in records else ()
            frozen.user_attrs = kept | {
                f"{LAUNCH}{launch.launch_number}": {"record": launch.model_dump(mode="json"), "artifacts": []}
                for launch in launches
            }
            made.optuna.add_trial(frozen)
        for name, value in self.optuna.user_attrs.items():
            if not name.startswith(LAUNCH):
                made.set_fact(name, value)
        return made

    @classmethod
    def new_in_memory(cls, name: str, artifact_dir: Path) -> StudyStore:
        """An empty study in memory. No file or folder is made."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        return cls(optuna.create_study(study_name=name, direction="maximize"), artifact_dir)

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every distinct trial in order of its number; launches of it oldest first.

        Raises SweepAborted when another server answers now, which does not have the study.
        """
        return self.database.patiently(self._trials)

    @property
    def read_through(self) -> int:
        """The connection that trials were last read through, as a number: another may lead to another server."""
        return self._connection

    def _trials(self) -> tuple[TrialRecord, ...]:
        """A standby that took over may lack what was written last: nothing that was read before counts then."""
        if (connection := self.database.connection()) != self._connection:
            self._require_study()
            forget_trials(self.optuna)
            self._reader = TrialReader(self.optuna)
            self._connection = connection
        return self._reader.trials()

    def _require_study(self) -> None:
        try:
            known = self.optuna._storage.get_study_id_from_name(self.name)
        except (KeyError, *STORAGE_ERRORS) as error:
            if is_lost(error):
                raise
            known = None  # the study is not there, or no study's tables are
        if known != self.optuna._study_id:
            raise SweepAborted(
                f"study {self.name!r} is no longer the one that this sweep has written to: another server answers "
                "now, which had not received it. The same command begins it anew there"
            )

    def save_launch(self, record: LaunchRecord, artifacts: Mapping[str, bytes]) -> LaunchRecord:
        """Write the artifacts, then the record. Saving a launch again replaces it. Returns the record as written.

        No secret is: neither what stands under a secret's name, nor a value that is known as one (KNOWN).
        """
        record = sealed(record)
        names, folder = [], claimed(self._artifact_dir, self._known_identity())
        files = FileSystemArtifactStore(folder)
        for name, content in artifacts.items():
            full = launch_artifact_name(record.launch_number, name)
            files.write(self._artifact_id(record.trial_number, full), io.BytesIO(KNOWN.hide_bytes(content)))
            names.append(full)
        data = {"record": json.loads(record.model_dump_json()), "artifacts": names}
        if self.database.is_shared:
            data["artifacts_at"] = f"machine {platform.node()}, in {folder.absolute()}"
        trial = self.frozen(record.trial_number)
        storage, key = self.optuna._storage, f"{LAUNCH}{record.launch_number}"
        if trial.state.is_finished():
            self.optuna.set_user_attr(f"{LAUNCH}{record.trial_number}:{record.launch_number}", data)
        else:
            storage.set_trial_user_attr(trial._trial_id, key, data)
        return record

    def artifact(self, trial_number: int, name: str) -> bytes:
        """The content of an artifact. Raises KeyError when there is none of that name.

        Or when it lies where only another machine can read it; the message says where.
        """
        files = FileSystemArtifactStore(folder_of(self._artifact_dir, self._known_identity()))
        try:
            with files.open_reader(self._artifact_id(trial_number, name)) as reader:
                return bytes(reader.read())
        except (ArtifactNotFound, OSError):
            kept = {trial.number: trial.artifacts for trial in self.trials()}.get(trial_number, {})
            at = f" here: it was written on {kept[name]}" if kept.get(name, name) != name else ""
            raise KeyError(f"trial {trial_number} has no artifact {name!r}{at}") from None

    def _known_identity(self) -> str:
        """The study's own word, once it has one (study_facts.py)."""
        self._identity = self._identity or str(self.fact("identity") or "")
        return self._identity

    def fact(self, name: str) -> Any:  # noqa: ANN401  (JSON)
        """A JSON value kept about the whole study; None when there is none."""
        return self.database.patiently(lambda: self._fact(name))

    def _fact(self, name: str) -> Any:  # noqa: ANN401  (JSON)
        if self._lean is None:
            return self.optuna.user_attrs.get(name)
        return self._lean.study_attr(self.optuna._study_id, name)

    def set_fact(self, name: str, value: Any) -> None:  # noqa: ANN401  (JSON)
        """Keep a JSON value about the whole study, without the secrets in it."""
        self.database.patiently(lambda: self.optuna.set_user_attr(name, KNOWN.hide_json(value)))

    def frozen(self, trial_number: int) -> FrozenTrial:
        """Optuna's own view of a trial. Raises KeyError for an unknown number."""
        storage = self.optuna._storage
        trial_id = storage.get_trial_id_from_study_id_trial_number(self.optuna._study_id, trial_number)
        return storage.get_trial(trial_id)

    def _artifact_id(self, trial_number: int, name: str) -> str:
        return f"trial-{trial_number}-{name}"
