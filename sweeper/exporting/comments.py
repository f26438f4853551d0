"""Comment lines: what a file is, and what it rests on. Text of a study is made plain: no comment ends early."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from sweeper.text import plain

WIDTH = 110


def comments(lines: Iterable[str]) -> str:
    """The lines behind `#`, wrapped; an empty line stays one."""
    wrapped = [part for line in lines for part in textwrap.wrap(plain(line, 2000), WIDTH) or [""]]
    return "".join(f"# {line}".rstrip() + "\n" for line in wrapped)
