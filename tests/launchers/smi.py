"""A stand-in for nvidia-smi: a program that says what a test wrote down, and a shell that finds it."""

from __future__ import annotations

from pathlib import Path

from launchers.base import CommandResult
from launchers.replies import quote
from launchers.shell import LocalShell

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


class GpuShell(LocalShell):
    """The real shell of a host with that nvidia-smi, which is given half a second instead of twenty."""

    def __init__(self, program: str, smi: Smi) -> None:
        super().__init__("here", program)
        self.path = quote(str(smi.folder))

    def run(self, script: str, timeout_s: float) -> CommandResult:
        hurried = script.replace(" gpus 2000; }", " gpus 50; }")
        return super().run(f"PATH={self.path}:$PATH\n{hurried}", timeout_s)
