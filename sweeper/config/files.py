"""YAML files of the user's own: what is wrong in them, with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import yaml

from sweeper.config.mistakes import one_line

YamlError: type[Exception] = yaml.YAMLError
"""What reading a file with wrong YAML raises."""

_HINTS = {
    "'\\t'": "lines are indented with blanks, not tabs",
    "that cannot start any token": "a value that begins with this sign stands in quotes",
    "unexpected end of stream": "a quotation mark that is opened here is never closed",
    "another document": "a file holds one: remove ---",
    "unhashable key": "braces begin a mapping; quote the value",
    "undefined alias": "* begins an alias; quote the value",
    "constructor for the tag": "! begins a tag; quote the value",
    "mapping values are not allowed": "is a colon missing in the line before, or a value to be quoted?",
    "could not find expected ':'": "write NAME: VALUE",
    "found duplicate key": "remove one of the two",
}
"""What is probably meant, by the parser's own words."""

_NO_BLANK = re.compile("[\u00a0\u2000-\u200b\u202f\u3000\ufeff]")
_OCTAL = re.compile(r"[-+]?0[0-9_]+")


def yaml_mistake(error: Exception) -> str:
    """A `YamlError` on one line, beginning with file and line where they are known."""
    if isinstance(error, yaml.reader.ReaderError):
        sign = f"U+{error.character:04X}" if isinstance(error.character, int) else repr(error.character)
        return f"{_from_here(Path(str(error.name)))}: has {sign}, which YAML does not take; remove it"
    if not isinstance(error, yaml.MarkedYAMLError):
        return one_line(str(error))
    mark = error.problem_mark or error.context_mark
    if "end of stream" in str(error.problem):
        mark = error.context_mark or mark
    where = f"{_from_here(Path(mark.name))}:{mark.line + 1}: " if mark else ""
    problem = str(error.problem or error.context)
    hint = next((f"; {text}" for words, text in _HINTS.items() if words in problem), "")
    return one_line(f"{where}not valid YAML: {problem}{hint}")


def _from_here(path: Path) -> Path:
    """The path as it is best read: from the working directory, if it lies in that."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def misplaced(folder: Path, group: str, option: str) -> str:
    """Where a file lies that may be meant by an option that does not exist, and what to do; empty for nowhere."""
    if not option or Path(option).name != option:
        return ""
    right = folder / group / f"{option}.yaml"
    for path, fix in (
        (right.with_suffix(".yml"), f"rename it to {right.name}"),
        (folder / right.name, f"move it to {right}"),
        (folder / "conf" / group / right.name, f"say --config-dir {folder / 'conf'}"),
    ):
        if path.is_file():
            return f"there is {path}: {fix}"
    return ""


def not_utf8(folder: Path) -> list[str]:
    """A line for each YAML file of `folder` that is not UTF-8: Hydra's own error does not name it."""
    lines = []
    for path in sorted(filter(Path.is_file, folder.rglob("*.yaml"))):
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            lines.append(f"{path}: is not UTF-8 (byte {error.start}: {error.reason}); save it as UTF-8")
    return lines


def trap_mistakes(path: Path) -> list[str]:
    """Words and numbers without quotes that YAML reads as something else, in a file that is valid YAML.

    YAML 1.1 reads `off` and `no` as false, `010` as 8 and `1:30` as 90. Raises `YamlError`.
    """
    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    if root is not None and not isinstance(root, yaml.MappingNode) and root.tag.rpartition(":")[2] != "null":
        return [f"{path}:{root.start_mark.line + 1}: should be a mapping: NAME: VALUE on each line{_blank(root)}"]
    nodes = [*_nodes(root, set())] if root is not None else []
    return [
        f"{path}:{node.start_mark.line + 1}: {node.value} without quotes is read as {_read(node.value)}; "
        f"write '{node.value}' in quotes to mean the text, or {_read(node.value)}"
        for node in nodes
        if isinstance(node, yaml.ScalarNode) and _is_trap(node)
    ] + [
        f"{path}:{name.start_mark.line + 1}: {name.value or 'nothing'} is no name; write it in quotes"
        for node in nodes
        if isinstance(node, yaml.MappingNode)
        for name, _ in node.value
        if name.tag.rpartition(":")[2] == "null"
    ]


def places_that_choose(option: str, folder: Path) -> list[str]:
    """`FILE:LINE` of each entry in the `defaults` of the folder's files that names `option`."""
    places = []
    for path in sorted(folder.rglob("*.yaml")):
        with suppress(yaml.YAMLError, UnicodeDecodeError, OSError):
            root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
            pairs = root.value if isinstance(root, yaml.MappingNode) else []
            chosen = [node for name, listed in pairs if name.value == "defaults" for node in _nodes(listed, set())]
            lines = [one.start_mark.line + 1 for one in chosen if one.value in (option, f"{option}.yaml")]
            places += [f"{path}:{line}" for line in lines]
    return places


def _blank(node: yaml.Node) -> str:
    """Names a character in `node` that only looks like a blank."""
    found = _NO_BLANK.search(str(node.value))
    return f"; it has a blank that is none (U+{ord(found[0]):04X})" if found else ""


def _is_trap(node: yaml.Node) -> bool:
    kind = node.tag.rpartition(":")[2]
    if kind == "bool":
        return node.value.lower() not in ("true", "false")
    return kind in ("int", "float") and (":" in node.value or bool(_OCTAL.fullmatch(node.value)))


def _read(text: str) -> str:
    value = yaml.safe_load(text)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nodes(node: yaml.Node, seen: set[int]) -> Iterator[yaml.Node]:
    """A node and all below it, keys included, each once (an alias may point back)."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    yield node
    for child in node.value if isinstance(node, yaml.CollectionNode) else ():
        for part in child if isinstance(child, tuple) else (child,):
            yield from _nodes(part, seen)
