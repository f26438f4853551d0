"""The kinds of shell that a host may have, which of them a test wants, and shells that behave otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from launchers.base import CommandResult, Shell

BUSYBOX_TOOLS = "sh awk cat env grep head ls mkdir mv printf readlink rm sed setsid sleep sync tail tr wc xargs"


def kinds(*quick: str) -> list[pytest.ParameterSet]:
    """Parameters: every kind of shell, slow ones unless named."""
    every = ("dash", "busybox", "ssh", "bash")
    return [pytest.param(kind, marks=() if kind in quick else pytest.mark.slow) for kind in every]


def quick_in(*quick: str) -> pytest.MarkDecorator:
    """Marks a test whose outcome may well differ in these shells: there too it is no slow test.

    Every test of a host is run in every kind of shell, but in most of them only in the slow tier.
    """
    return pytest.mark.parametrize("kind", kinds("dash", *quick), indirect=True)


def shell_program(kind: str, folder: Path) -> str:
    """A program that is the shell `kind`, also for the shells it starts; busybox brings all its own tools.

    Skips where there is no such shell.
    """
    binary = shutil.which(kind)
    if binary is None:
        pytest.skip(f"{kind} is not installed here: not tested as a host's shell")
    tools = folder / "tools"
    tools.mkdir()
    for tool in BUSYBOX_TOOLS.split() if kind == "busybox" else ["sh"]:
        (tools / tool).symlink_to(binary)
    path = tools if kind == "busybox" else f"{tools}:$PATH"
    program = folder / "shell"
    program.write_text(f'#!/bin/sh\nPATH={path} exec {tools}/sh "$@"\n')
    program.chmod(0o700)
    return str(program)


class AlteredShell:
    """A shell that runs every script altered."""

    def __init__(self, inner: Shell, alter: Callable[[str], str]) -> None:
        self.inner = inner
        self.alter = alter
        self.name = inner.name
        self.hold = inner.hold
        self.address = inner.address
        self.num_breaks = inner.num_breaks

    def run(self, script: str, timeout_s: float) -> CommandResult:
        return self.inner.run(self.alter(script), timeout_s)


def hasty(script: str) -> str:
    """A stop waits half a second instead of five for the end of what was killed, and as long for the port."""
    return script.replace(" 500; }", " 50; }")


def toothless(script: str) -> str:
    """Signals have no effect: the way to see processes that survive SIGKILL. In haste, too."""
    return hasty(_redefined(script, "kill() { :; }"))


def slow_to_look(script: str) -> str:
    """Each look at the server's processes takes a third of a second."""
    return _redefined(script, "marked() { nap 0.3; }")


def _redefined(script: str, function: str) -> str:
    functions, call = script.split("\n{ main ")
    return f"{functions}\n{function}\n{{ main {call}"
