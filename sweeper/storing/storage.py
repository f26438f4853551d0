"""The study on disk: Optuna's storage for summaries, Optuna's artifact store for raw requests and logs.

Everything specsweep knows about a trial can be read from here, by later processes and by analysis. An artifact is
written before the record that names it, so a record never points to nothing.
"""

from __future__ import annotations

import io
import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from sweeper.storing.artifact_place import claimed, cleared, folder_of, require_readable
from sweeper.storing.damage import Damage, reason_in, refusal
from sweeper.storing.database import Database, FileDatabase
from sweeper.storing.later_launches import forget_trials, lean_backend
from sweeper.storing.losses import STORAGE_ERRORS, is_lost
from sweeper.storing.saved_launch import LAUNCH
from sweeper.storing.study_place import Place, open_each, open_optuna
from sweeper.storing.trial_reading import TrialReader

_TABLES = re.compile("fingerprint( of .*)?|verdict|searched|run:.*")
"""The names of facts that are tables."""


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
        records = {trial.number: trial for trial in self.readable()}
        for frozen in self.optuna.get_trials(deepcopy=True):
            kept = {name: value for name, value in frozen.user_attrs.items() if not name.startswith(LAUNCH)}
            launches = records[frozen.number].launches if frozen.number in records else ()
            frozen.user_attrs = kept | {
                f"{LAUNCH}{launch.launch_number}": {"record": launch.model_dump(mode="json"), "artifacts": []}
                for launch in launches
            }
            made.optuna.add_trial(frozen)
        for name in self.fact_names():
            made.set_fact(name, self.fact(name))
        return made

    @classmethod
    def new_in_memory(cls, name: str, artifact_dir: Path) -> StudyStore:
        """An empty study in memory. No file or folder is made."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        return cls(optuna.create_study(study_name=name, direction="maximize"), artifact_dir)

    def trials(self) -> tuple[TrialRecord, ...]:
        """Every distinct trial in order of its number; launches of it oldest first. For who adds launches.

        Raises SpecsweepError for a record that cannot be read, SweepAborted when another server answers now, which
        does not have the study.
        """
        found = self.database.patiently(self._trials)
        if damages := self._reader.damages:
            raise refusal(self.name, self._with_files(damages))
        return found

    def readable(self) -> tuple[TrialRecord, ...]:
        """The same for who only looks: what cannot be read is left out, and `damages` tells it."""
        return self.database.patiently(self._trials)

    def damages(self) -> tuple[Damage, ...]:
        """All that cannot be read: launches, whole trials, and what is kept about the study as a whole."""
        self.readable()
        return (*self._with_files(self._reader.damages), *self.damaged_facts())

    def damaged_facts(self) -> list[Damage]:
        """The facts that cannot be read, or are not what they should be; `fact` gives None for them."""
        return [Damage(why, fact=name) for name in self.fact_names() if (why := self._fact_or_why(name)[1])]

    def require_readable(self) -> None:
        """Raises SpecsweepError for what cannot be read: before a sweep writes its first word."""
        if damages := self.damages():
            raise refusal(self.name, damages)

    def _with_files(self, damages: Sequence[Damage]) -> list[Damage]:
        """With where the raw files of a launch lie, if some are here."""
        folder = folder_of(self._artifact_dir, self._known_identity())
        names = [(d, self._artifact_id(d.trial or 0, launch_artifact_name(d.launch or 0, ""))) for d in damages]
        return [
            replace(d, files=str(folder / f"{name}*"))
            if d.trial is not None and d.launch is not None and any(folder.glob(f"{name}*"))
            else d
            for d, name in names
        ]

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
            cleared(folder / self._artifact_id(record.trial_number, full))
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
        """The content of an artifact. Raises KeyError when there is none of that name, or what is there is none.

        Or when it lies where only another machine can read it; the message says where.
        """
        folder = folder_of(self._artifact_dir, self._known_identity())
        artifact = self._artifact_id(trial_number, name)
        try:
            require_readable(folder, artifact)
            with FileSystemArtifactStore(folder).open_reader(artifact) as reader:
                return bytes(reader.read())
        except (FileNotFoundError, ArtifactNotFound):
            kept = {trial.number: trial.artifacts for trial in self.readable()}.get(trial_number, {})
            why = f" here: it was written on {kept[name]}" if kept.get(name, name) != name else ""
        except (OSError, ValueError) as error:
            why = f" that can be read: {error.strerror or error}" if isinstance(error, OSError) else ""
        raise KeyError(f"trial {trial_number} has no artifact {name!r}{why}")

    def _known_identity(self) -> str:
        """The study's own word, once it has one (study_facts.py)."""
        self._identity = self._identity or str(self.fact("identity") or "")
        return self._identity

    def fact(self, name: str) -> Any:  # noqa: ANN401  (JSON)
        """A JSON value kept about the whole study; None when there is none."""
        return self.database.patiently(lambda: self._fact(name))

    def texts(self, name: str) -> dict[str, str]:
        """The texts in a fact that is a table of such; of one that is absent, or not what it should be, none."""
        fact = self.fact(name)
        return {str(k): v for k, v in fact.items() if isinstance(v, str)} if isinstance(fact, Mapping) else {}

    def _fact(self, name: str) -> Any:  # noqa: ANN401  (JSON)
        return self._fact_or_why(name)[0]

    def _fact_or_why(self, name: str) -> tuple[Any, str]:
        """The value, and why there is none although something is kept; else empty."""
        if self._lean is None:
            return self.optuna.user_attrs.get(name), ""
        try:
            value = self._lean.study_attr(self.optuna._study_id, name)
        except (ValueError, TypeError, RecursionError) as error:
            return None, reason_in(error)
        if value is not None and _TABLES.fullmatch(name) and not isinstance(value, Mapping):
            return None, "it is no table"
        return value, ""

    def fact_names(self, prefix: str = "") -> list[str]:
        """The names of the facts that begin with `prefix`, also of those that cannot be read."""
        if self._lean is None:
            names = list(self.optuna.user_attrs)
        else:
            names = self._lean.study_attr_names(self.optuna._study_id, prefix)
        return [name for name in names if name.startswith(prefix) and not name.startswith(LAUNCH)]

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
