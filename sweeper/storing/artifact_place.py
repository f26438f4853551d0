"""The folder of a study's artifacts. Of two studies of one name, in two databases, each has one of its own."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 256 * 1024 * 1024
"""No artifact of ours is larger: logs are bounded, and ten thousand requests with texts take a third."""

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


def require_readable(folder: Path, name: str) -> None:
    """Raises OSError that says why a file is no artifact: it is not there, no plain file, or far too large."""
    if Path(name).name != name:
        raise OSError("its name is no file's")
    status = (folder / name).stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is no plain file")
    if status.st_size > MAX_BYTES:
        raise OSError(f"it is of {status.st_size / 2**20:.0f} MiB, and none of ours is larger than 256")


def cleared(file: Path) -> None:
    """Make way for an artifact: a link is not written through, nor is a pipe waited for. Raises OSError."""
    with suppress(FileNotFoundError):
        mode = file.lstat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            file.unlink()


def _owner(folder: Path) -> str:
    """Whose a folder is; empty where nobody has said so."""
    try:
        return (folder / OWNER).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
