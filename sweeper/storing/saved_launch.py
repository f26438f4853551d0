"""A launch as it is kept in a study: its record, and the names of its artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict, ValidationError

from sweeper.errors import SpecsweepError
from sweeper.records import LaunchRecord, Record
from sweeper.text import plain

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
        """What samplers read of it (speculation.py), as it is stored."""
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


Stored = tuple[SavedLaunch | Unreadable, ...]
"""Launches of one trial."""


def read_saved(text: str) -> SavedLaunch | Unreadable:
    """A launch from its JSON."""
    try:
        return SavedLaunch.model_validate_json(text)
    except (ValidationError, ValueError, RecursionError) as error:
        return refused(error)


def refused(error: Exception) -> Unreadable:
    """What could not be read, with the first line of why."""
    return Unreadable(str(error).splitlines()[0] if str(error) else type(error).__name__)


def unreadable(where: str, reason: str) -> SpecsweepError:
    """What to raise for a record at `where` (study and trial) that cannot be read."""
    first = plain(reason.splitlines()[0]) if reason else "it is damaged"
    return SpecsweepError(
        f"{where}: the stored record cannot be read ({first}). It was written by another "
        "version of specsweep or damaged; use that version, or start anew with another `study.name`."
    )
