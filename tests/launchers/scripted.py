"""A host that says what a test wrote down for it."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext

from launchers.base import CommandResult
from launchers.errors import LauncherError


class Scripted:
    """A shell that gives the scripted answers, in order, and fails on any further call."""

    def __init__(self, *answers: tuple[str, str] | LauncherError, name: str = "gpu") -> None:
        self.name = name
        self.answers = list(answers)
        self.verbs: list[str] = []

    def run(self, script: str, timeout_s: float) -> CommandResult:
        call = re.search(r"^\{ main (\w+) \S+ (\w+)", script, re.MULTILINE)
        assert call is not None
        self.verbs.append(call[2])
        answer = self.answers.pop(0)
        if isinstance(answer, LauncherError):
            raise answer
        kind, body = answer
        frame = f"\n@specsweep {call[1]}"
        return CommandResult(0, f"banner{frame} begin {kind}\n{body}{frame} end 0\n".encode(), b"")

    def address(self, port: int) -> str:
        raise AssertionError("no address is asked for")

    def num_breaks(self) -> int:
        return 0

    def hold(self, lock_path: str) -> AbstractContextManager[None]:
        return nullcontext()
