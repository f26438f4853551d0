"""The folder of a study's artifacts. Of two studies of one name, in two databases, each has one of its own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

OWNER = ".study"
"""The file that says whose a folder is: a study's identity."""


def folder_of(folder: Path, identity: str) -> Path:
    """Where the study's artifacts are: in `folder`, or beside it where that is of another study of the name.

    Without an identity, or where nobody has signed, it is `folder`.
    """
    if not identity or _owner(folder) in ("", identity):
        return folder
    return folder.with_name(f"{folder.name}-{identity[:6]}")


def claimed(folder: Path, identity: str) -> Path:
    """The same, made and signed by the study, which is about to write there. Raises OSError."""
    place = folder_of(folder, identity)
    place.mkdir(parents=True, exist_ok=True)
    if identity:
        with suppress(FileExistsError), (place / OWNER).open("x", encoding="ascii", errors="replace") as file:
            file.write(identity)
    return place


def _owner(folder: Path) -> str:
    """Whose a folder is; empty where nobody has said so."""
    try:
        return (folder / OWNER).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
