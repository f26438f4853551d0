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
from optuna.trial import TrialState as OptunaState
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from sweeper.errors import ConfigError, SpecsweepError
from sweeper.forecasts import Forecast, Span
from sweeper.known_secrets import KNOWN
from sweeper.records import LaunchRecord, TrialRecord, TrialState, launch_artifact_name
from sweeper.samplers.physics import stored_forecast
from sweeper.secrets import sealed, shows_secrets
from sweeper.spec import ServerConfig
from sweeper.text import plain

STORAGE_ERRORS = (SQLAlchemyError, optuna.exceptions.StorageInternalError)
"""What a storage that is full, locked or gone raises in the middle of a sweep."""

_LAUNCH = "launch"
_MAX_DIGITS = 9
_STATES = {
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.INFEASIBLE,
    OptunaState.FAIL: TrialState.FAILED,
}


class StudyStore:
    """One study: its trials as records, its artifacts, and named JSON facts about the whole of it."""

    def __init__(self, study: optuna.Study, artifact_dir: Path) -> None:
        self.optuna = study
        self.name = study.study_name
        self._artifact_dir = artifact_dir
        self._artifacts = FileSystemArtifactStore(artifact_dir)
        self._finished: dict[int, TrialRecord] = {}

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
            storage = optuna.storages.RDBStorage(storage_url, engine_kwargs=_engine_settings(storage_url))
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
        extra = self._later_launches()
        records = []
        for frozen in self.optuna.get_trials(deepcopy=False):
            if frozen.state is OptunaState.WAITING or frozen.user_attrs.get("left_out"):
                continue
            records.append(self._trial(frozen, extra.get(frozen.number, [])))
        return tuple(records)

    def save_launch(self, record: LaunchRecord, artifacts: Mapping[str, bytes]) -> LaunchRecord:
        """Write the artifacts, then the record. Saving a launch again replaces it. Returns the record as written.

        No secret is: neither what stands under a secret's name, nor a value that is known as one (KNOWN).
        """
        record = sealed(record)
        names = []
        for name, content in artifacts.items():
            full = launch_artifact_name(record.launch_number, name)
            self._artifacts.write(
                self._artifact_id(record.trial_number, full), io.BytesIO(KNOWN.hide_bytes(content))
            )
            names.append(full)
        data = {"record": json.loads(record.model_dump_json()), "artifacts": names}
        trial = self.frozen(record.trial_number)
        storage, key = self.optuna._storage, f"{_LAUNCH}:{record.launch_number}"
        if trial.state.is_finished():
            self.optuna.set_user_attr(f"{_LAUNCH}:{record.trial_number}:{record.launch_number}", data)
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
        return self.optuna.user_attrs.get(name)

    def set_fact(self, name: str, value: Any) -> None:  # noqa: ANN401  (JSON)
        """Keep a JSON value about the whole study, without the secrets in it."""
        self.optuna.set_user_attr(name, KNOWN.hide_json(value))

    def frozen(self, trial_number: int) -> FrozenTrial:
        """Optuna's own view of a trial. Raises KeyError for an unknown number."""
        storage = self.optuna._storage
        trial_id = storage.get_trial_id_from_study_id_trial_number(self.optuna._study_id, trial_number)
        return storage.get_trial(trial_id)

    def _artifact_id(self, trial_number: int, name: str) -> str:
        return f"trial-{trial_number}-{name}"

    def _later_launches(self) -> dict[int, list[Mapping[str, Any]]]:
        """Launches made after their trial was told (Optuna freezes a finished trial's attributes)."""
        found: dict[int, list[Mapping[str, Any]]] = {}
        for key, value in self.optuna.user_attrs.items():
            prefix, _, rest = key.partition(":")
            if prefix == _LAUNCH and rest:
                number = rest.partition(":")[0]
                if not number.isdecimal() or len(number) > _MAX_DIGITS:
                    raise _unreadable(f"study {self.name}", ValueError(f"no trial has the number {number[:60]!r}"))
                found.setdefault(int(number), []).append(value)
        return found

    def _trial(self, frozen: FrozenTrial, later: list[Mapping[str, Any]]) -> TrialRecord:
        known = self._finished.get(frozen.number)
        if known is None:
            known = self._parse(frozen)
            if frozen.state.is_finished():
                self._finished[frozen.number] = known
        if not later:
            return known
        launches, artifacts = _launches(later, f"study {self.name}, trial {frozen.number}")
        return known.model_copy(
            update={
                "launches": _in_order(known.launches + launches),
                "artifacts": {**known.artifacts, **artifacts},
            }
        )

    def _parse(self, frozen: FrozenTrial) -> TrialRecord:
        where = f"study {self.name}, trial {frozen.number}"
        attrs = frozen.user_attrs
        raw = [value for name, value in attrs.items() if name.startswith(f"{_LAUNCH}:")]
        launches, artifacts = _launches(raw, where)
        try:
            return self._record(frozen, launches, artifacts)
        except (ValidationError, TypeError, ValueError) as error:
            raise _unreadable(where, error) from error

    def _record(
        self, frozen: FrozenTrial, launches: tuple[LaunchRecord, ...], artifacts: dict[str, str]
    ) -> TrialRecord:
        attrs = frozen.user_attrs
        canonical = ServerConfig.model_validate_json(json.dumps(attrs.get("canonical", {})))
        return TrialRecord(
            number=frozen.number,
            key=canonical.key() if shows_secrets(canonical) else attrs.get("key", ""),
            state=_STATES[frozen.state],
            requested=ServerConfig.model_validate_json(json.dumps(attrs.get("requested", {}))),
            canonical=canonical,
            launches=_in_order(launches),
            forecast=_forecast(frozen),
            artifacts=artifacts,
        )


def _forecast(frozen: FrozenTrial) -> Forecast | None:
    """What the sampler wrote down about the trial; None when it expected nothing."""
    found = stored_forecast(frozen)
    if found is None:
        return None
    spans = [
        None if each is None else Span(mean=each.mean, low=each.low, high=each.high)
        for each in (found.throughput, found.accept_length, found.step_time_ms)
    ]
    return Forecast(
        throughput=spans[0],
        accept_length=spans[1] if spans[1] and spans[1].high > 1 else None,  # without drafts there is none
        step_ms=spans[2],
        p_start=found.p_start,
        gain_pct=None if found.expected_gain is None else 100 * found.expected_gain,
        remaining_pct=None if found.remaining_gain is None else 100 * found.remaining_gain,
        reason=found.reason,
    )


def _launches(raw: list[Mapping[str, Any]], where: str) -> tuple[tuple[LaunchRecord, ...], dict[str, str]]:
    try:
        launches = tuple(LaunchRecord.model_validate_json(json.dumps(item["record"])) for item in raw)
        return launches, {name: name for item in raw for name in item["artifacts"]}
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(where, error) from error


def _unreadable(where: str, error: Exception) -> SpecsweepError:
    reason = plain(str(error).splitlines()[0]) if str(error) else type(error).__name__
    return SpecsweepError(
        f"{where}: the stored record cannot be read ({reason}). It was written by another "
        "version of specsweep or damaged; use that version, or start anew with another `study.name`."
    )


def _in_order(launches: tuple[LaunchRecord, ...]) -> tuple[LaunchRecord, ...]:
    return tuple(sorted(launches, key=lambda launch: launch.launch_number))


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
