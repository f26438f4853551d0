"""`specsweep completion`: what is offered, and that real shells offer it."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweeper.usage.completing import candidates
from sweeper.usage.completion_scripts import SCRIPTS
from sweeper.usage.table import USAGES
from tests.commands.conftest import MakeStudy

PATIENCE_S = 120.0


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["res"], ["resume"]),
        (["run", "preset=llamacpp_s"], ["preset=llamacpp_smoke"]),
        (["run", "bud"], ["budget."]),
        (["run", "budget.tri"], ["budget.trials="]),
        (["run", "study/"], ["study/sampler="]),
        (["run", "limits.gpu_errors="], ["limits.gpu_errors=true", "limits.gpu_errors=false"]),
        (["report", "--out"], ["--output"]),
        (["export", "--format", "k"], ["kubernetes"]),
        (["export", "b"], ["best", "baseline", "budget."]),
        (["completion", "f"], ["fish"]),
        (["import", "--set", "x"], []),
        (["nonsense", "x"], []),
    ],
)
def test_what_may_stand_at_the_cursor(words: list[str], offered: list[str]) -> None:
    assert candidates(words) == offered


def test_every_command_is_offered() -> None:
    assert set(USAGES) <= set(candidates([""]))


def test_a_folder_of_ones_own_is_offered_once_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "space").mkdir()
    (tmp_path / "space" / "mine.yaml").write_text("my_flag: choice(1, 2)\n")
    (tmp_path / "space" / "broken.yaml").write_text("a: [\n")
    words = ["run", "--config-dir", str(tmp_path)]
    assert candidates([*words, "space=m"]) == ["space=mine"]
    assert candidates([*words, "space.my"]) == ["space.my_flag="]
    assert candidates(["run", "space=m"]) == []


@pytest.mark.study
def test_studies_are_offered_where_one_is_named(make_study: MakeStudy) -> None:
    make_study("tuesday", trials=0)
    assert candidates(["report", "study.name="]) == ["study.name=tuesday"]
    assert candidates(["resume", "t"]) == ["tuesday", "tracking=", "tracking."]
    assert candidates(["report", "--with", ""]) == ["tuesday"]
    assert candidates(["report", "study.dir=/nowhere", "study.name="]) == []


def test_it_loads_nothing_of_a_sweep() -> None:
    heavy = ("optuna", "hydra", "omegaconf", "pydantic", "sqlalchemy", "mlflow", "pandas", "rich", "paramiko")
    import sweeper.usage.completing as module

    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert [name for name in heavy if f"import {name}" in source] == []


@pytest.mark.host
def test_a_new_process_loads_nothing_heavy_either() -> None:
    code = "import sys; import sweeper.commands.completion; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"optuna", "hydra", "omegaconf", "pydantic", "sqlalchemy", "mlflow", "pandas", "rich", "paramiko"}
    assert heavy & set(loaded) == set()


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, as a shell finds it."""
    program = tmp_path / "bin" / "specsweep"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m sweeper "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("TERM", "dumb")


def typed(argv: list[str], setup: list[str], text: str, until: str) -> str:
    """What an interactive shell shows after `text` was typed into it; ends as soon as `until` is there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    shown = b""
    try:
        os.write(terminal, "".join(f"{line}\n" for line in setup).encode() + b"echo rea''dy\n")
        for wanted, keys in ((b"ready", text.encode()), (until.encode(), b"")):
            end, shown = time.monotonic() + PATIENCE_S, b""
            while wanted not in shown and time.monotonic() < end:
                if select.select([terminal], [], [], 0.2)[0]:
                    shown += os.read(terminal, 4096)
            os.write(terminal, keys)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown.decode(errors="replace")


@pytest.mark.host
@pytest.mark.parametrize(
    ("text", "until"),
    [("specsweep run preset=llamacpp_s\t", "moke "), ("specsweep run budget.tri\t", "als=")],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.usefixtures("on_path")
def test_bash_and_zsh_complete_it(shell: str, text: str, until: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}: apt-get install {shell}")
    argv = ["bash", "--norc", "-i"] if shell == "bash" else ["zsh", "-f", "-i"]
    begin = ["autoload -U compinit; compinit -u"] if shell == "zsh" else []
    shown = typed(argv, [*begin, f"source <(specsweep completion {shell})"], text, until)
    assert until in shown


@pytest.mark.host
@pytest.mark.usefixtures("on_path")
def test_fish_completes_it() -> None:
    if shutil.which("fish") is None:
        pytest.skip("needs fish: apt-get install fish")
    asked = 'specsweep completion fish | source; complete -C "specsweep run preset=llamacpp_s"'
    shown = subprocess.run(["fish", "-c", asked], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["preset=llamacpp_smoke"]


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_a_script_only_asks(shell: str) -> None:
    assert "completion --words" in SCRIPTS[shell]
