"""The few rows of a large study that say where it stands: all trials' ends, and the launches of some of them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy

from sweeper.standing.briefs import read_brief
from sweeper.storing.lean_storage import TRIALS, USER, VALUES, LeanStorage
from sweeper.storing.saved_launch import LAUNCH, SavedLaunch, Stored, Unreadable

CHUNK = 400


class Outline(NamedTuple):
    """One trial: Optuna's state by name, and the value that was told, if any."""

    number: int
    trial_id: int
    state: str
    value: float | None


def outlines(storage: LeanStorage, study_id: int) -> list[Outline]:
    """Every trial that is ours, in the order of their numbers; one that waits in the queue has not begun."""
    t, v, u = TRIALS.c, VALUES.c, USER.c
    left_out = sqlalchemy.select(u.trial_id).where(u.key == "left_out")
    query = (
        sqlalchemy.select(t.number, t.trial_id, sqlalchemy.type_coerce(t.state, sqlalchemy.String), v.value)
        .join_from(TRIALS, VALUES, t.trial_id == v.trial_id, isouter=True)
        .where(t.study_id == study_id, t.trial_id.not_in(left_out))
        .order_by(t.number)
    )
    with storage.engine.connect() as connection:
        rows = connection.execute(query)
        return [Outline(number, key, state, value) for number, key, state, value in rows if state != "WAITING"]


def last_moment(storage: LeanStorage, study_id: int) -> datetime.datetime | None:
    """When a trial last began or ended; None before the first. Optuna keeps UTC without saying so."""
    t = TRIALS.c
    query = sqlalchemy.select(sqlalchemy.func.max(t.datetime_start), sqlalchemy.func.max(t.datetime_complete))
    with storage.engine.connect() as connection:
        row = connection.execute(query.where(t.study_id == study_id)).one()
    return max((moment.replace(tzinfo=datetime.UTC) for moment in row if moment is not None), default=None)


def count_launches(storage: LeanStorage, study_id: int) -> dict[str, int]:
    """How many launches of their own the baseline (under `baseline`) and all other trials (`search`) have."""
    t, u = TRIALS.c, USER.c
    is_baseline = t.number == 0
    query = (
        sqlalchemy.select(is_baseline, sqlalchemy.func.count())
        .join_from(TRIALS, USER, t.trial_id == u.trial_id)
        .where(t.study_id == study_id, u.key.startswith(LAUNCH, autoescape=True))
        .group_by(is_baseline)
    )
    with storage.engine.connect() as connection:
        found = connection.execute(query)
        return {"baseline" if of_baseline else "search": count for of_baseline, count in found}


def launches_of(storage: LeanStorage, trials: Sequence[Outline]) -> dict[int, Stored]:
    """The launches kept with these trials, in brief, by trial number."""
    numbers = {trial.trial_id: trial.number for trial in trials}
    found: dict[int, dict[str, SavedLaunch | Unreadable]] = {trial.number: {} for trial in trials}
    u = USER.c
    for ids in _chunks(list(numbers)):
        query = sqlalchemy.select(u.trial_id, u.key, u.value_json).where(
            u.trial_id.in_(ids), u.key.startswith(LAUNCH, autoescape=True)
        )
        with storage.engine.connect() as connection:
            for trial_id, name, text in connection.execute(query):
                found[numbers[trial_id]][name] = read_brief(text)
    return dict(found)


def _chunks(ids: Sequence[int]) -> Iterable[Sequence[int]]:
    return (ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK))
