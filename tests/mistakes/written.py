"""Writes docs/mistakes.md from the table: `python -m tests.mistakes.written`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.mistakes.made import make, typed
from tests.mistakes.table import STUDY, TABLE, Mistake

PAGE = Path(__file__).parents[2] / "docs" / "mistakes.md"
_HEAD = """\
# What specsweep says to mistakes

Each mistake is told in one message, before anything is started or written: the place first (a dotted path, a file
and its line, an option), then the value, then what would be right. All that is wrong with a configuration is told
at once. The exit code is 2, unless it is named. This page is written from what the program said
(`python -m tests.mistakes.written`), and a test holds it to that.
"""


def page(said: Mapping[Mistake, str]) -> str:
    """The page. `said`: each message."""
    lines, group = [_HEAD], ""
    for mistake, message in said.items():
        if mistake.group != group:
            group = mistake.group
            lines.append(f"## {group}\n")
        lines += _entry(mistake, message)
    return "\n".join(lines)


def _entry(mistake: Mistake, message: str) -> Iterator[str]:
    code = f" (exit code {mistake.code.value})" if mistake.code != 2 else ""
    yield f"**{mistake.told_of[0].upper()}{mistake.told_of[1:]}**{code}\n"
    yield "```text"
    for name, content in mistake.files.items():
        if isinstance(content, str):
            shown = content.replace("\t", "<tab>").splitlines() or ["(empty)"]
            yield from (f"# {name}: {line}" for line in shown)
        elif content != STUDY and b"\n" in content:
            yield f"# {name}: saved as Latin-1"
    yield f"$ {typed(mistake)}"
    yield from (line.rstrip() for line in message.rstrip("\n").splitlines())
    yield "```\n"


def in_general(message: str, folder: Path) -> str:
    """The message as it would be anywhere else."""
    return message.replace(str(folder), "/home/you")


def said_to_all() -> dict[Mistake, str]:
    """Each message, made anew."""
    said = {}
    with tempfile.TemporaryDirectory() as state:
        os.environ |= {"XDG_STATE_HOME": state, "LOGNAME": "you", "USER": "you"}
        for mistake in TABLE:
            with tempfile.TemporaryDirectory() as folder:
                said[mistake] = in_general(make(mistake, Path(folder)).err, Path(folder))
    return said


if __name__ == "__main__":
    PAGE.write_text(page(said_to_all()), encoding="utf-8")
