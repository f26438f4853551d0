"""What the documentation holds: its pages, their fenced blocks and what stands between single backticks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOP = tuple(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
PAGES = (*TOP, *sorted(DOCS.rglob("*.md")))

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^ *```", re.M | re.S
)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block. `title`: the file that it is, as the reader is told."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def place(self) -> str:
        """Where a reader finds it."""
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The command lines of a console block; lines that end in a backslash go on."""
        joined = self.text.replace("\\\n", " ")
        return [line.strip() for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def blocks(*languages: str) -> list[Block]:
    """All fenced blocks in these languages; of all when none is named."""
    return [block for page in PAGES for block in _blocks(page) if not languages or block.language in languages]


def _blocks(page: Path) -> Iterator[Block]:
    text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        body = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.M)
        yield Block(name, line, found["language"], found["title"] or "", body)


def inline() -> list[tuple[str, str]]:
    """Everything between single backticks: (the page's name, the text)."""
    return [
        (page.relative_to(ROOT).as_posix(), found)
        for page in PAGES
        for found in _INLINE.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    ]


def words_of(command: str) -> list[str]:
    """A command line as the shell splits it, its comment left out."""
    return shlex.split(command, comments=True)


def all_commands() -> list[tuple[str, str]]:
    """Every command line of a console block: (where it stands, the command)."""
    return [(block.place, command) for block in blocks("console") for command in block.commands]
