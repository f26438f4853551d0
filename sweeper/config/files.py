"""YAML files of the user's own: what is wrong in them, with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from sweeper.config.mistakes import one_line

YamlError: type[Exception] = yaml.YAMLError
"""What reading a file with wrong YAML raises."""

_HINTS = {
    "'\\t'": "lines are indented with blanks, not tabs",
    "mapping values are not allowed": "is a colon missing in the line before, or a value to be quoted?",
    "could not find expected ':'": "write NAME: VALUE",
    "found duplicate key": "remove one of the two",
}
"""What is probably meant, by the parser's own words."""

_OCTAL = re.compile(r"[-+]?0[0-9_]+")


def yaml_mistake(error: Exception) -> str:
    """A `YamlError` on one line, beginning with file and line where they are known."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return one_line(str(error))
    mark = error.problem_mark or error.context_mark
    where = f"{_from_here(Path(mark.name))}:{mark.line + 1}: " if mark else ""
    problem = str(error.problem or error.context)
    hint = next((f"; {text}" for words, text in _HINTS.items() if words in problem), "")
    return one_line(f"{where}not valid YAML: {problem}{hint}")


def _from_here(path: Path) -> Path:
    """The path as it is best read: from the working directory, if it lies in that."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


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
        return [f"{path}:{root.start_mark.line + 1}: should be a mapping: NAME: VALUE on each line"]
    return [
        f"{path}:{node.start_mark.line + 1}: {node.value} without quotes is read as {_read(node.value)}; "
        f"write '{node.value}' in quotes to mean the text, or {_read(node.value)}"
        for node in (_scalars(root, set()) if root is not None else ())
        if _is_trap(node)
    ]


def _is_trap(node: yaml.Node) -> bool:
    kind = node.tag.rpartition(":")[2]
    if kind == "bool":
        return node.value.lower() not in ("true", "false")
    return kind in ("int", "float") and (":" in node.value or bool(_OCTAL.fullmatch(node.value)))


def _read(text: str) -> str:
    value = yaml.safe_load(text)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalars(node: yaml.Node, seen: set[int]) -> Iterator[yaml.ScalarNode]:
    """All scalars below a node, keys included, each once (an alias may point back)."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        yield node
        return
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            yield from _scalars(part, seen)
