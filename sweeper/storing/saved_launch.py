"""A launch as it is kept in a study: its record, and the names of its artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, ValidationError

from sweeper.records import LaunchRecord, Record
from sweeper.storing.damage import reason_in

_MAX_DIGITS = 9
LAUNCH = "launch:"
"""Attributes of this beginning hold launches: `launch:N` of a trial; of a study, `launch:TRIAL:N`, those that were
made after their trial was told (Optuna freezes a finished trial's attributes)."""


class SavedLaunch(Record):
    """One stored launch. `artifacts_at`: where its artifacts lie, if not everybody can read them; else empty."""

    model_config = ConfigDict(extra="ignore")

    record: LaunchRecord
    artifacts: tuple[str, ...]
    artifacts_at: str = ""

    def excerpt(self) -> dict[str, Any]:
        """What samplers read of it (searching/speculation.py), as it is stored."""
        failure = self.record.failure
        return {
            "record": {
                "metrics": self.record.metrics,
                "accepted_per_position": self.record.accepted_per_position,
                "failure": None if failure is None else {"kind": failure.kind.value},
            }
        }


@dataclass(frozen=True)
class Unreadable:
    """A stored launch that another version wrote, or that is damaged."""

    reason: str

    def excerpt(self) -> dict[str, Any]:
        """It says nothing, as a failed one."""
        return {"record": {"metrics": {}, "accepted_per_position": (), "failure": {}}}


Stored = Mapping[str, SavedLaunch | Unreadable]
"""Launches of one trial, by the attributes that hold them."""


def read_saved(text: str) -> SavedLaunch | Unreadable:
    """A launch from its JSON."""
    try:
        return SavedLaunch.model_validate_json(text)
    except (ValidationError, ValueError, TypeError, RecursionError) as error:
        return Unreadable(reason_in(error))


def number_in(text: str) -> int | None:
    """The number of a trial or launch that a part of an attribute's name is; None for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else None
