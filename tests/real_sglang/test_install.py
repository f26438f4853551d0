"""An install that is killed goes on where it was."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.real_sglang.install import InstallFailed, run, step


class Maker:
    """Makes a folder with one file, or dies half-way."""

    def __init__(self, *, dies: bool = False) -> None:
        self.dies, self.made = dies, 0

    def __call__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "half").touch()
        if self.dies:
            raise KeyboardInterrupt
        self.made += 1


def make(result: Path, maker: Maker, recipe: str = "as always") -> None:
    step(result, recipe, maker, lambda _: None)


def test_a_step_that_was_killed_leaves_no_result_and_is_made_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "env", Maker(dies=True))
    assert not (tmp_path / "env").exists()

    make(tmp_path / "env", Maker())
    assert (tmp_path / "env" / "half").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["env"]


def test_a_step_that_is_done_is_left_alone(tmp_path: Path) -> None:
    again = Maker()
    make(tmp_path / "env", Maker())
    make(tmp_path / "env", again)

    assert again.made == 0


def test_a_step_is_made_anew_when_its_recipe_changed(tmp_path: Path) -> None:
    again = Maker()
    make(tmp_path / "env", Maker())
    make(tmp_path / "env", again, "as never before")

    assert again.made == 1


@pytest.mark.host
def test_a_failed_command_is_told_with_what_it_printed() -> None:
    with pytest.raises(InstallFailed) as failed:
        run([sys.executable, "-c", "print('no such wheel'); raise SystemExit(3)"])

    assert "exit code 3" in str(failed.value)
    assert "no such wheel" in str(failed.value)
