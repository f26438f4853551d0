"""Makes a mistake in a folder of its own, in this process, and tells what came of it."""

from __future__ import annotations

import contextlib
import io
import shlex
from dataclasses import dataclass
from pathlib import Path

from sweeper.__main__ import main
from sweeper.storing.storage import StudyStore
from tests.mistakes.table import STUDY, Mistake


@dataclass(frozen=True)
class Outcome:
    """The exit code, what was said on each stream, and what was written that was not there before."""

    code: int
    out: str
    err: str
    written: tuple[str, ...]


def make(mistake: Mistake, folder: Path) -> Outcome:
    """The real command, in `folder`."""
    with contextlib.chdir(folder):
        _lay(mistake, folder)
        before = _all(folder)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(mistake.typed)
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Outcome(code, out.getvalue(), err.getvalue(), tuple(sorted(_all(folder) - before)))


def typed(mistake: Mistake) -> str:
    """The command as one writes it in a shell."""
    words = shlex.join(["specsweep", *mistake.typed])
    return f"specsweep {mistake.typed[0]} {mistake.in_shell}" if mistake.in_shell else words


def _lay(mistake: Mistake, folder: Path) -> None:
    for name, content in mistake.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content == STUDY:
            StudyStore.open(f"sqlite:///{path}", "night", str(path.parent), create=True)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _all(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
