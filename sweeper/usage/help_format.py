"""How `--help` is laid out: prose and examples within the width of the terminal. Loads little."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator, Sequence

_EXAMPLE = re.compile(r"( *)(\S.*?)(?:\s{2,}(\S.*))?")
_EXAMPLE_TOLD = re.compile(r"\S {2,}\S")
_CODES = re.compile(r" {1,4}\d+ {2}\S")
"""The lines of exit codes."""

_DEEP = 20
"""A line that is indented by as much goes on with what the line above says of its example."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Leaves texts as they are written where they fit, and lays them out anew where the terminal is narrower."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = text.splitlines()
        if all(len(line) <= width for line in lines):
            return super()._fill_text(text, width, indent)
        return "\n".join(indent + line for line in _narrow(lines, width))


def _narrow(lines: Sequence[str], width: int) -> Iterator[str]:
    """The lines, none wider than `width` unless one word, or one command, is."""
    prose: list[str] = []
    for line in _joined(lines):
        if line and not line.startswith(" "):
            prose.append(line)
            continue
        yield from _wrapped(" ".join(prose), width)
        prose.clear()
        yield from _example(line, width)
    yield from _wrapped(" ".join(prose), width)


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """The lines, with those that go on with the explanation of an example behind it."""
    whole = ""
    for line in lines:
        if whole and len(line) - len(line.lstrip()) >= _DEEP:
            whole += f" {line.strip()}" if _EXAMPLE_TOLD.search(whole) else f"  {line.strip()}"
            continue
        if whole:
            yield whole
        whole = line
        if not line:
            yield line
    if whole:
        yield whole


def _example(line: str, width: int) -> Iterator[str]:
    """A command, and below it what it does; an exit code with its meaning beside it."""
    if len(line) <= width:
        yield line
        return
    if _CODES.match(line):
        yield from _wrapped(line, width, " " * 7, first="")
        return
    found = _EXAMPLE.fullmatch(line)
    indent, command, meaning = found.groups("") if found else ("", line, "")
    yield f"{indent}{command}"
    yield from _wrapped(meaning, width, " " * 6)


def _wrapped(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """Lines of whole words; one word may be too wide."""
    lines = textwrap.TextWrapper(width, indent if first is None else first, indent)
    lines.break_long_words = lines.break_on_hyphens = False
    return lines.wrap(text)
