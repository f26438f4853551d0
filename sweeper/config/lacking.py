"""A file of the user's own that leaves out what the packaged ones have: one message, with the line to add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import yaml

from sweeper.config.mistakes import NOT_GIVEN

_END = f": {NOT_GIVEN}"
_BASES = {"study": "default", "tracking": "mlflow"}
"""The packaged file to begin from where there is hardly another one."""


def named_by_file(mistakes: Sequence[str], folder: Path | None, groups: Mapping[str, str]) -> list[str]:
    """The mistakes; where a file in `folder` is why values are missing, one line names the file and all of them.

    `groups`: the option that was chosen of each group. A root of the user's own, `config.yaml`, counts, too.
    """
    if folder is None:
        return list(mistakes)
    if (folder / "config.yaml").is_file():
        return [*_of_root(mistakes, folder / "config.yaml")]
    for group, option in groups.items():
        file, names = folder / group / f"{option}.yaml", _missing(mistakes, group)
        if names and file.is_file() and (base := _base_of(file, group)):
            line = f"{file}: lacks {', '.join(names)}; let it begin with the line: defaults: [{base}]"
            mistakes = [line, *(known for known in mistakes if not _follows(known, group, base))]
    return list(mistakes)


def _follows(mistake: str, group: str, base: str) -> bool:
    """Whether a mistake is there because a file of the group lacks what `base` has."""
    if mistake.endswith(f"choose {group}={base} too"):
        return True
    is_missing = mistake.startswith(f"{group}.") and mistake.partition(": ")[2].startswith("is missing; ")
    return (is_missing and "; give it: " not in mistake) or f"Interpolation key '{group}." in mistake


def _of_root(mistakes: Sequence[str], file: Path) -> Iterator[str]:
    if lacking := [line.removesuffix(_END) for line in mistakes if line.endswith(_END)]:
        yield f"{file}: takes the place of the packaged one, and lacks {', '.join(lacking)}; make it a preset"
    yield from (line for line in mistakes if not line.endswith(_END))


def _missing(mistakes: Sequence[str], group: str) -> list[str]:
    """The settings of a group that have no value at all."""
    start = f"{group}."
    return [
        line.removeprefix(start).removesuffix(_END)
        for line in mistakes
        if line.startswith(start) and line.endswith(_END)
    ]


def _base_of(file: Path, group: str) -> str:
    """The packaged file that this one should begin from; empty for a file that begins from one, or may not.

    A host is reached over SSH or is this machine; an engine is the one that it names.
    """
    with suppress(yaml.YAMLError, UnicodeDecodeError, OSError):
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        written = content if isinstance(content, Mapping) else {}
        if "defaults" in written:
            return ""
        if group == "host":
            return "ssh" if "ssh" in written or written.get("kind") == "ssh" else "local"
        # All engines: commands that only look do without them as long as nothing is wrong.
        from sweeper.engines.registry import ENGINE_NAMES

        name = written.get("name") if group == "engine" else _BASES.get(group)
        return name if isinstance(name, str) and (group != "engine" or name in ENGINE_NAMES) else ""
    return ""
