"""What is wrong around the command: no home, no room, no terminal, no zone. One message each, no traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sweeper.errors import ExitCode
from sweeper.storing.storage import StudyStore

pytestmark = [pytest.mark.host, pytest.mark.study, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def no_room() -> None:
    """Files of this process may not have any content, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def ended(
    *words: str, folder: Path, before: Callable[[], None] | None = None, behind: str = "", **environment: str
) -> tuple[int, str]:
    """The exit code, and what was written to standard error; `behind`: what stands behind the command there."""
    known = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"), **environment}
    argv = ["/bin/sh", "-c", f'"$0" "$@" {behind}', sys.executable, "-m", "sweeper", *words]
    made = subprocess.run(
        argv, cwd=folder, env=known, capture_output=True, text=True, timeout=120, preexec_fn=before
    )
    assert "Traceback" not in made.stderr
    assert "a bug in specsweep" not in made.stderr
    return made.returncode, made.stderr


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with a study in its place."""
    (tmp_path / "sweeps").mkdir()
    StudyStore.open(f"sqlite:///{tmp_path}/sweeps/optuna.db", "night", str(tmp_path / "sweeps"), create=True)
    return tmp_path


@pytest.mark.parametrize("words", [("studies",), ("studies", "--json")])
def test_a_table_that_is_lost_on_a_full_disk_is_told(words: tuple[str, ...], kept: Path) -> None:
    code, told = ended(*words, folder=kept, behind="> /dev/full")
    assert code == ExitCode.ABORTED
    assert "No space left on device" in told


@pytest.mark.parametrize("shell", [">&-", "<&-", "<&- >&- 2>&-", "| true"])
def test_streams_that_are_closed_are_no_mistake(shell: str, kept: Path) -> None:
    assert ended("studies", folder=kept, behind=shell) == (0, "")


def test_a_full_disk_ends_a_report_with_the_place(kept: Path) -> None:
    code, told = ended("report", "study.name=night", "--output", "r.md", folder=kept, before=no_room)
    assert (code, told.count("\n")) == (ExitCode.USAGE, 2)
    assert "--output: r.md cannot be written: File too large; mend that, or name another place" in told


def test_a_zone_that_nobody_knows_is_no_bug(tmp_path: Path) -> None:
    code, told = ended("plan", "--trials", "0", "budget.until=07:00", folder=tmp_path, TZ="Nowhere/City")
    assert (code, told) == (0, "")


@pytest.mark.parametrize("columns", ["0", "1", "many"])
def test_any_width_shows_something(columns: str, kept: Path) -> None:
    made = kept / "shown"
    assert ended("studies", folder=kept, behind=f"> {made}", COLUMNS=columns)[0] == 0
    assert "night" in "".join(made.read_text(encoding="utf-8").split())


def test_a_state_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    code, told = ended("run", "--plain", "host.state_dir=/dev/null/x", folder=tmp_path)
    assert code == ExitCode.ABORTED
    assert "'/dev/null/x/host.lock' cannot be opened" in told
    assert "may you write in its folder?" in told
