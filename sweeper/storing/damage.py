"""What of a study cannot be read: those who look at the study leave it out and say so, a sweep does not go on.

A sweep would count the trial as never made, give its launch the same number again and so overwrite what another
version wrote, or a person may still mend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from sweeper.errors import SpecsweepError
from sweeper.text import plain

MOST_TOLD = 5
_MAX_REASON = 160
_ORIGIN = "written by another version of specsweep, or damaged"


@dataclass(frozen=True)
class Damage:
    """One thing that cannot be read: a launch, a trial (`launch` is None), or what `fact` names (no trial).

    `files`: where the raw files of a launch lie.
    """

    reason: str
    trial: int | None = None
    launch: int | None = None
    fact: str = ""
    files: str = ""

    @property
    def place(self) -> str:
        """`trial 3, launch 0`."""
        if self.trial is None:
            return f"what is kept under {plain(self.fact, 60)!r}"
        return f"trial {self.trial}" + ("" if self.launch is None else f", launch {self.launch}")

    @property
    def text(self) -> str:
        """In one line: where it is, why it cannot be read, and where its raw files are."""
        return f"{self.place}: {self.reason}" + (f"; its files: {self.files}" if self.files else "")


def reason_in(error: Exception) -> str:
    """Why a stored text was refused: the first mistake and where it is, without the text itself."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        told = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
    else:
        told = (str(error).splitlines() or [""])[0]
    return plain(told, _MAX_REASON) or type(error).__name__


def told(damages: Sequence[Damage]) -> list[str]:
    """A line for each of the first few, and how many more there are."""
    left = len(damages) - MOST_TOLD
    return [*(damage.text for damage in damages[:MOST_TOLD]), *([f"and {left} more"] if left > 0 else [])]


def left_out(study: str, damages: Sequence[Damage]) -> list[str]:
    """What a reader says of what it leaves out; nothing where all could be read."""
    if not damages:
        return []
    return [f"study {study}: left out, because it cannot be read ({_ORIGIN}): {'; '.join(told(damages))}"]


def refusal(study: str, damages: Sequence[Damage]) -> SpecsweepError:
    """What a sweep raises before it measures anything."""
    lines = "".join(f"\n  {line}" for line in told(damages))
    return SpecsweepError(
        f"study {study}: the stored record cannot be read ({_ORIGIN}):{lines}\n"
        "No launch is added to such a study. Go on with the version that wrote it, put a copy of the database "
        "back, or begin another study that learns from all that can be read: "
        f"study.name=NEW study.warm_start=[{study}]"
    )
