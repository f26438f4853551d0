"""The console of commands that print a page: for people, and for programs that read it line by line."""

from __future__ import annotations

import os
import sys

from rich.console import Console

from sweeper.streams import lenient

UNBOUND = 240
"""Columns where there is no terminal: lines are left whole."""


def screen() -> Console:
    """Standard output, as wide as the terminal or as COLUMNS says; else lines are left whole."""
    is_told = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(file=lenient(sys.stdout, needs_disk=True), highlight=False, width=None if is_told else UNBOUND)
