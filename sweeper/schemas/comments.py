"""What the packaged files say of their own keys: the comment behind a key, and its value.

trials: 12     # this is the comment of `trials`, and
               # so is a line that goes on in the same column
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources

import yaml

_COMMENT = re.compile(r"(?:^|\s)#\s?(.*)$")


@dataclass(frozen=True)
class Commented:
    """One key of a file: its value as plain data (`${...}` as written) and its comment, on one line."""

    value: object
    comment: str


def packaged(name: str) -> str:
    """The text of a packaged file, such as `host/ssh.yaml`."""
    return resources.files("conf").joinpath(name).read_text(encoding="utf-8")


def head(text: str) -> str:
    """The comment that a file begins with, on one line, without lines that are meant for programs."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(("# @", "# yaml-language-server:")):
            lines.append(line.removeprefix("#").strip())
    return " ".join(lines)


def commented(text: str, prefix: str = "") -> Mapping[str, Commented]:
    """The keys of a YAML file that are mappings' keys, by dotted path behind `prefix`."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return dict(_keys(root, prefix.split(".") if prefix else [], text.splitlines()))


def _keys(node: yaml.Node | None, above: list[str], lines: list[str]) -> Iterator[tuple[str, Commented]]:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        path = [*above, str(key.value)]
        loader = yaml.SafeLoader("")
        plain = loader.construct_object(value, deep=True)
        yield ".".join(path), Commented(plain, _behind(key, value, lines) or _over(key, lines))
        yield from _keys(value, path, lines)


def _behind(key: yaml.Node, value: yaml.Node, lines: list[str]) -> str:
    """The comment on the key's own line, and the lines below it that go on in the same column."""
    row = key.start_mark.line
    inline = value.start_mark.line == row
    end = value.end_mark if inline and value.end_mark.line == row else key.end_mark
    found = _COMMENT.search(lines[row], end.column)
    if found is None:
        return ""
    texts, column = [found[1]], lines[row].index("#", end.column)
    for line in lines[row + 1 :]:
        if line.find("#") != column or line.strip()[0] != "#":
            break
        texts.append(line[column + 1 :].strip())
    return " ".join(texts)


def _over(key: yaml.Node, lines: list[str]) -> str:
    """The comment above a key, in its own column; that at the head of a file is about the file."""
    texts: list[str] = []
    for row in range(key.start_mark.line - 1, -1, -1):
        line = lines[row]
        if not line.startswith(" " * key.start_mark.column + "#"):
            return " ".join(reversed(texts))
        texts.append(line.strip().removeprefix("#").strip())
    return ""
