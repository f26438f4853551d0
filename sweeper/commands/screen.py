"""The console of commands that print a page: for people, and for programs that read it line by line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from rich.console import Console

from sweeper.known_secrets import KNOWN
from sweeper.storing.damage import Damage, left_out
from sweeper.streams import lenient

UNBOUND = 240
"""Columns where there is no terminal: lines are left whole."""


def screen() -> Console:
    """Standard output, as wide as the terminal or as COLUMNS says; else lines are left whole."""
    is_told = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(file=lenient(sys.stdout, needs_disk=True), highlight=False, width=None if is_told else UNBOUND)


def say_left_out(study: str, damages: Sequence[Damage]) -> None:
    """Tell on standard error what of a study cannot be read, in one line; nothing where all can."""
    for line in left_out(study, damages):
        lenient(sys.stderr).write(f"note: {KNOWN.hide(line)}\n")
