"""How a run looks whose trial the study does not have any more. Pure.

The standby of a database that takes over may not have received what was written last. MLflow, which has its own
database, then shows trials that are none: measured, but of no study. Their numbers are given again.
"""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.tracking.notes import OTHER_COLOR
from sweeper.tracking.view import TAG_COLOR, TAG_LOST, TAG_NOTE, TAG_STATE

LOST = "lost"
LOST_STATUS = "KILLED"
_NOTE = """**The study has lost this trial.** It was trial {number}. What is shown here was measured, but the
study's database does not have it any more: a standby took over that had not received it, or an older copy was put
back. No verdict counts it, and its number may have been given to another configuration."""


def lost_tags(number: str) -> Mapping[str, str]:
    """What the run of a lost trial says of itself; `number`: the trial that it was."""
    return {TAG_STATE: LOST, TAG_LOST: number, TAG_COLOR: OTHER_COLOR, TAG_NOTE: _NOTE.format(number=number)}
