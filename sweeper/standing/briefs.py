"""Launches as far as it takes to say where a study stands: a fifth of the time that whole records take to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field, ValidationError

from sweeper.records import Failure, LaunchRecord, Metrics, Purpose, Record
from sweeper.spec import ServerConfig
from sweeper.storing.damage import reason_in
from sweeper.storing.saved_launch import SavedLaunch, Unreadable


class Brief(Record):
    """What is read of a launch; its fields are those of `LaunchRecord`, whose others keep their defaults."""

    model_config = ConfigDict(extra="ignore")

    trial_number: int
    launch_number: int
    purpose: Purpose
    requested: ServerConfig
    canonical: ServerConfig
    argv: tuple[str, ...] = ()
    host: str
    started_at: AwareDatetime
    ended_at: AwareDatetime
    failure: Failure | None = None
    provenance: Mapping[str, str] = {}
    metrics: Metrics = Field(default_factory=dict)
    repeat_throughputs: tuple[float, ...] = ()
    estimated: str = ""


_NOTHING: Mapping[str, Any] = {}
_BLANK = LaunchRecord.model_construct(**_NOTHING)
"""The defaults of what is not read: pydantic would copy them for each launch, which takes longer than reading."""


class _Saved(Record):
    model_config = ConfigDict(extra="ignore")

    record: Brief


def read_brief(text: str) -> SavedLaunch | Unreadable:
    """A launch from its JSON, as `read_saved`, without its artifacts and all that `Brief` leaves out."""
    try:
        found = _Saved.model_validate_json(text).record
    except (ValidationError, ValueError, TypeError, RecursionError) as error:
        return Unreadable(reason_in(error))
    return SavedLaunch(record=_BLANK.model_copy(update=dict(found)), artifacts=())
