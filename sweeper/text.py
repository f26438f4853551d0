"""Text from outside (a server, a log, a file) made fit for a screen: one line, bounded, without terminal codes."""

from __future__ import annotations

import re

MAX_LINE = 300

_CODES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # window titles, links
    r"|\x9b[0-?]*[ -/]*[@-~]"  # colours again, spelt with one byte
    r"|\x1b[ -/]*[0-~]"  # everything shorter
)


def without_codes(text: str) -> str:
    """`text` without terminal escape codes."""
    return _CODES.sub("", text)


def plain(text: str, limit: int = MAX_LINE) -> str:
    """`text` on one line, at most `limit` characters: no terminal codes, no control or invisible characters."""
    bare = without_codes(text[: 10 * limit + 1000])
    visible = " ".join("".join(c for c in bare if c.isprintable() or c.isspace()).split())
    return visible if len(visible) <= limit else visible[: limit - 1] + "…"


def printable(text: str) -> str:
    """`text` in its own lines, without terminal codes and other characters that are not shown."""
    lines = without_codes(text.replace("\r\n", "\n")).split("\n")
    return "\n".join("".join(c if c.isprintable() else " " for c in line).rstrip() for line in lines)
