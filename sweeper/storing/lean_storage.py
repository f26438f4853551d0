"""Optuna's database storage, for studies of many trials whose attributes are large.

Optuna reads a trial as some hundred objects and keeps all of its JSON as Python values. With 10,000 launch records
of 16 KB that is a minute and 2 GiB. Here rows are read as rows, a launch record is parsed once, and a trial keeps
of it what samplers read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import sqlalchemy
from optuna.distributions import BaseDistribution, json_to_distribution
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState
from pydantic_core import from_json
from sqlalchemy.orm import scoped_session, sessionmaker

from sweeper.garbage import no_search_for_garbage, stays
from sweeper.records import LaunchRecord
from sweeper.storing.damage import reason_in
from sweeper.storing.memory import sharing
from sweeper.storing.saved_launch import LAUNCH, SavedLaunch, Stored, Unreadable, read_saved

HEAD = "v3.2.0.a"
"""The version of the tables that Optuna 5 makes."""

_CHUNK = 400
"""Trials that are read at once: below what any database takes as parameters of one statement."""

STUDIES, TRIALS, PARAMS, VALUES, STEPS, USER, SYSTEM, STUDY = (
    getattr(model, "__table__")  # noqa: B009  (mypy knows it as a FromClause only)
    for model in (
        models.StudyModel,
        models.TrialModel,
        models.TrialParamModel,
        models.TrialValueModel,
        models.TrialIntermediateValueModel,
        models.TrialUserAttributeModel,
        models.TrialSystemAttributeModel,
        models.StudyUserAttributeModel,
    )
)
Rows = dict[int, list[Any]]

_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, AssertionError, ArithmeticError, RecursionError)
"""What rows raise that nobody of ours has written, or that a disk has lost."""


class LeanStorage(RDBStorage):
    """Reads trials in bulk. `launches`: the launch records of each trial that was read, by Optuna's trial id.

    `damaged`: why a trial's rows cannot be read, likewise; for Optuna it is one that failed, without anything.
    In the attributes of a trial that was read in bulk, `launch:N` holds only what `SavedLaunch.excerpt` says.
    """

    def __init__(self, url: str, engine_kwargs: dict[str, Any]) -> None:
        super().__init__(url, engine_kwargs=engine_kwargs)
        self.launches: dict[int, Stored] = {}
        self.damaged: dict[int, str] = {}
        self._last: LaunchRecord | None = None

    @classmethod
    def opened(cls, url: str, engine_kwargs: dict[str, Any]) -> LeanStorage:
        """As the constructor makes it; what that raises.

        Tables that are of this Optuna's version already are taken as they are. To look at them it loads alembic
        with all its dialects, which takes a sixth of a second.
        """
        engine = sqlalchemy.create_engine(url, **engine_kwargs)
        if not _has_current_tables(engine):
            engine.dispose()
            return cls(url, engine_kwargs)
        storage = cls.__new__(cls)
        storage.engine, storage.url, storage.engine_kwargs = engine, url, engine_kwargs
        storage.scoped_session = scoped_session(sessionmaker(bind=engine))
        storage.skip_compatibility_check = True
        storage.heartbeat_interval = storage.grace_period = None
        storage.heartbeat_stale_trial_callback = storage.failed_trial_callback = None
        storage.launches, storage.damaged, storage._last = {}, {}, None
        return storage

    def study_attr(self, study_id: int, name: str) -> Any:  # noqa: ANN401  (JSON)
        """One attribute of a study, without reading the others; None when there is none."""
        with self.engine.connect() as connection:
            text = connection.scalar(_attr(study_id, name))
        return None if text is None else json.loads(text)

    def study_attr_names(self, study_id: int, prefix: str = "") -> list[str]:
        """The names of a study's attributes that begin so, oldest first."""
        c = STUDY.c
        query = (
            sqlalchemy.select(c.key)
            .where(c.study_id == study_id, c.key.startswith(prefix, autoescape=True))
            .order_by(c.study_user_attribute_id)
        )
        with self.engine.connect() as connection:
            return list(connection.scalars(query))

    def study_attr_texts(self, study_id: int, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The JSON text of each of these attributes of a study."""
        c = STUDY.c
        for start in range(0, len(names), _CHUNK):
            chosen = c.key.in_(names[start : start + _CHUNK])
            with self.engine.connect() as connection:
                found = connection.execute(
                    sqlalchemy.select(c.key, c.value_json).where(c.study_id == study_id, chosen)
                )
                yield from ((name, text) for name, text in found)

    def _get_trials(
        self,
        study_id: int,
        states: Container[TrialState] | None,
        included_trial_ids: set[int],
        trial_id_greater_than: int,
    ) -> list[FrozenTrial]:
        """Optuna's own contract: the study's trials in these states that are newer, or included."""
        c = TRIALS.c
        newer = c.trial_id > trial_id_greater_than
        known = [number for number in included_trial_ids if number <= trial_id_greater_than]
        wanted = sqlalchemy.or_(newer, c.trial_id.in_(known)) if known else newer
        query = sqlalchemy.select(c.trial_id).where(c.study_id == study_id, wanted).order_by(c.trial_id)
        with self.engine.connect() as connection:
            ids, found = list(connection.scalars(query)), list[FrozenTrial]()
            with _growing(len(ids)):
                for start in range(0, len(ids), _CHUNK):
                    found += self._whole(connection, ids[start : start + _CHUNK])
        return found if states is None else [trial for trial in found if trial.state in states]

    def _whole(self, connection: sqlalchemy.Connection, ids: Sequence[int]) -> list[FrozenTrial]:
        """These trials; where some cannot be read, one by one, and that one as nothing but damaged."""
        try:
            return self._built(connection, ids)
        except _DAMAGE as error:
            if len(ids) > 1:
                return [trial for each in ids for trial in self._whole(connection, [each])]
            return self._nothing_of(connection, ids[0], error)

    def _nothing_of(self, connection: sqlalchemy.Connection, trial_id: int, error: Exception) -> list[FrozenTrial]:
        """A trial of which only the number is known; none without that."""
        number = connection.scalar(sqlalchemy.select(TRIALS.c.number).where(TRIALS.c.trial_id == trial_id))
        self.launches[trial_id], self.damaged[trial_id] = {}, reason_in(error)
        return [failed_trial(number, trial_id)] if isinstance(number, int) else []

    def _built(self, connection: sqlalchemy.Connection, ids: Sequence[int]) -> list[FrozenTrial]:
        chosen = sqlalchemy.select(TRIALS).where(TRIALS.c.trial_id.in_(ids)).order_by(TRIALS.c.trial_id)
        rows = list(connection.execute(chosen))
        params, values, steps, user, system = (
            _by_trial(connection, table, ids) for table in (PARAMS, VALUES, STEPS, USER, SYSTEM)
        )
        return [
            FrozenTrial(
                number=row.number,
                state=row.state,
                value=None,
                values=_values(values[row.trial_id]),
                datetime_start=_local(row.datetime_start),
                datetime_complete=_local(row.datetime_complete),
                params={
                    p.param_name: _distribution(p.distribution_json).to_external_repr(p.param_value)
                    for p in params[row.trial_id]
                },
                distributions={p.param_name: _distribution(p.distribution_json) for p in params[row.trial_id]},
                user_attrs=self._user_attrs(row, user[row.trial_id]),
                system_attrs={attr.key: _value(attr.value_json) for attr in system[row.trial_id]},
                intermediate_values={
                    v.step: models.TrialIntermediateValueModel.stored_repr_to_intermediate_value(
                        v.intermediate_value, v.intermediate_value_type
                    )
                    for v in steps[row.trial_id]
                },
                trial_id=row.trial_id,
            )
            for row in rows
        ]

    def _user_attrs(self, row: Any, attrs: Sequence[Any]) -> dict[str, Any]:  # noqa: ANN401  (a row)
        saved = {a.key: self.read(a.value_json) for a in attrs if a.key.startswith(LAUNCH)}
        self.launches[row.trial_id] = saved
        self.damaged.pop(row.trial_id, None)
        return {a.key: saved[a.key].excerpt() if a.key in saved else _value(a.value_json) for a in attrs}

    def read(self, text: str) -> SavedLaunch | Unreadable:
        """A stored launch from its JSON; what is equal to the one read before is held in memory once."""
        saved = read_saved(text)
        if isinstance(saved, Unreadable):
            return saved
        record = saved.record if self._last is None else sharing(saved.record, self._last)
        self._last = record
        return saved.model_copy(update={"record": record})


def failed_trial(number: int, trial_id: int) -> FrozenTrial:
    """What Optuna is told of a trial that nobody can read: it failed, and is none of ours."""
    return FrozenTrial(
        number=number,
        state=TrialState.FAIL,
        value=None,
        datetime_start=None,
        datetime_complete=None,
        params={},
        distributions={},
        user_attrs={"left_out": True},
        system_attrs={},
        intermediate_values={},
        trial_id=trial_id,
    )


@contextmanager
def _growing(num_trials: int) -> Iterator[None]:
    """Nothing of what is read becomes garbage, now or later."""
    with no_search_for_garbage():
        yield
    stays(num_trials)


def _has_current_tables(engine: sqlalchemy.Engine) -> bool:
    """Whether all of Optuna's tables are there as this Optuna makes them: it writes their version down last."""
    if not sqlalchemy.inspect(engine).has_table("alembic_version"):
        return False
    with engine.connect() as connection:
        return bool(connection.scalar(sqlalchemy.text("SELECT version_num FROM alembic_version")) == HEAD)


def _attr(study_id: int, name: str) -> sqlalchemy.Select[Any]:
    return sqlalchemy.select(STUDY.c.value_json).where(STUDY.c.study_id == study_id, STUDY.c.key == name)


def _value(text: str) -> Any:  # noqa: ANN401  (JSON)
    """As json.loads, but the same few names and words in thousands of trials are held in memory once."""
    try:
        return from_json(text, cache_strings="all")
    except ValueError:  # halves of surrogate pairs, which only json.loads takes
        return json.loads(text)


def _by_trial(connection: sqlalchemy.Connection, table: Any, ids: Sequence[int]) -> Rows:  # noqa: ANN401  (a table)
    """The rows of these trials, in the order in which they were written."""
    found: Rows = defaultdict(list)
    key = next(iter(table.primary_key.columns))
    for row in connection.execute(sqlalchemy.select(table).where(table.c.trial_id.in_(ids)).order_by(key)):
        found[row.trial_id].append(row)
    return found


def _values(rows: Sequence[Any]) -> list[float] | None:
    ordered = sorted(rows, key=lambda row: row.objective)
    return [
        float(models.TrialValueModel.stored_repr_to_value(row.value, row.value_type)) for row in ordered
    ] or None


def _local(moment: Any) -> Any:  # noqa: ANN401  (a moment, or None)
    """Optuna keeps UTC and shows local time, both without saying so."""
    return moment and models.TrialModel(_datetime_start_utc=moment).datetime_start


@lru_cache(maxsize=1024)
def _distribution(text: str) -> BaseDistribution:
    return json_to_distribution(text)
