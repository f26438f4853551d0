"""A stand-in for nvidia-smi: a program that says what a test wrote down, and a shell that finds it."""

from __future__ import annotations

from pathlib import Path

from launchers.base import Shell
from launchers.replies import quote
from tests.launchers.shells import AlteredShell

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


class GpuShell(AlteredShell):
    """A shell of a host with that nvidia-smi, which is given one second instead of twenty."""

    def __init__(self, inner: Shell, smi: Smi) -> None:
        path = quote(str(smi.folder))
        super().__init__(
            inner, lambda script: f"PATH={path}:$PATH\n{script.replace(' gpus 2000; }', ' gpus 100; }')}"
        )
