"""A stand-in for nvidia-smi: a program that says what a test wrote down, and a shell that finds it."""

from __future__ import annotations

from pathlib import Path

from launchers.base import CommandResult, Shell
from launchers.replies import quote

PROGRAM = """#!/bin/sh
cd {folder}
echo "$*" >> asked
[ ! -e hang ] || {{ sleep 1000 & echo $$ $! > hanging; wait; }}
case $1 in --query-gpu=*) cat gpu ;; --query-compute-apps=*) cat app ;; esac
read -r code < code; exit $code
"""


class Smi:
    """The stand-in's folder. GPU n has the uuid GPU-n and 143,771 MiB."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        program = folder / "nvidia-smi"
        program.write_text(PROGRAM.format(folder=quote(str(folder))))
        program.chmod(0o700)
        self.says()

    def says(self, *used_mib: int | str, processes: str = "", code: int = 0) -> None:
        rows = [f"{index}, NVIDIA H200, GPU-{index}, {used}, 143771\n" for index, used in enumerate(used_mib)]
        self.says_text("".join(rows), processes, code)

    def says_text(self, gpus: str, processes: str = "", code: int = 0) -> None:
        for name, text in (("gpu", gpus), ("app", processes), ("code", f"{code}\n")):
            (self.folder / name).write_text(text)

    def asked(self) -> list[str]:
        notes = self.folder / "asked"
        return notes.read_text().splitlines() if notes.exists() else []


class GpuShell:
    """A shell of a host with that nvidia-smi, which is given one second instead of twenty."""

    def __init__(self, inner: Shell, smi: Smi) -> None:
        self.inner = inner
        self.name = inner.name
        self.hold = inner.hold
        self.address = inner.address
        self.num_breaks = inner.num_breaks
        self.path = quote(str(smi.folder))

    def run(self, script: str, timeout_s: float) -> CommandResult:
        hurried = script.replace(" gpus 2000; }", " gpus 100; }")
        return self.inner.run(f"PATH={self.path}:$PATH\n{hurried}", timeout_s)
