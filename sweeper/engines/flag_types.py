"""What is known of single flags of an engine, as data: for editors, and for the reference.

An engine NAME keeps that in `NAME_flag_types.py`, as `FLAG_TYPES`. One without has flags all the same; nothing is
said of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

Kind = Literal["whole", "real", "bare", "text", "words", "numbers", "refused"]


@dataclass(frozen=True)
class FlagType:
    """One flag. `low` and `high`: legal limits, both included; `choices`: its values, all of them.

    `words`: a list of `choices` by commas; `numbers`: whole numbers with spaces between them; `refused`: a name
    that may not be used, for the reason in `note`.
    """

    kind: Kind
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    note: str = ""


def flag_types(engine: str) -> Mapping[str, FlagType]:
    """What is known of the flags of `engine`, by name; empty when nothing is."""
    room = f"sweeper.engines.{engine}.flag_types"
    try:
        is_there = find_spec(room) is not None
    except ModuleNotFoundError:  # an engine of one file
        is_there = False
    known: Mapping[str, FlagType] = import_module(room).FLAG_TYPES if is_there else {}
    return dict(sorted(known.items()))


def renamed(names: Mapping[str, str]) -> dict[str, FlagType]:
    """Flags that are refused since they are written otherwise: to what, by name."""
    return {name: FlagType("refused", note=f"write {other}") for name, other in names.items()}
