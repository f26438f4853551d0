"""`specsweep export` as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.commands.export import choice_of, split_choice
from sweeper.errors import ConfigError, ExitCode
from sweeper.exporting.bundle import FORMATS
from sweeper.storing.storage import StudyStore
from sweeper.usage.table import USAGES
from tests.analysis.builders import fill, won_night
from tests.exporting.made import kept, launched

pytestmark = [pytest.mark.study, pytest.mark.compose]


@pytest.fixture
def place(tmp_path: Path) -> str:
    folder = tmp_path / "sweeps"
    store = StudyStore.open(f"sqlite:///{folder}/optuna.db", "night", str(folder), create=True)
    fill(store, launched(won_night()))
    kept().keep(store)
    return f"study.dir={folder}"


def test_all_formats_are_written_and_named(place: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["export", place, "study.name=night"]) == ExitCode.OK
    told = capsys.readouterr().out
    folder = tmp_path / "sweeps" / "night-export"
    assert "Advised: the winner" in told
    for name in ("run.sh", "night-server.service", "compose.yaml", "kubernetes.yaml", "llama-server.ini"):
        assert str(folder / name) in told
        assert "trial 1" in (folder / name).read_text()
    assert (folder / "run.sh").stat().st_mode & 0o111
    assert (folder / "hydra/preset/night-server-tuned.yaml").is_file()


def test_one_format_can_be_printed(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["export", "trial=2", place, "study.name=night", "--format", "script", "--output", "-"])
        == ExitCode.OK
    )
    told = capsys.readouterr().out
    assert told.startswith("#!/bin/sh\n# Study night, trial 2")
    assert "--size-m 7" in told


def test_several_files_cannot_be_printed(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", place, "study.name=night", "--format", "hydra", "--output", "-"]) == ExitCode.USAGE
    assert "--output: - prints one file, and there are 4" in capsys.readouterr().err


def test_a_missing_study_is_said(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", place, "study.name=other"]) == ExitCode.USAGE
    assert "its studies: night" in capsys.readouterr().err


def test_what_is_asked_for_is_told_from_settings() -> None:
    assert split_choice(["best", "study.name=x"]) == (["study.name=x"], ["best"])
    asked: tuple[list[str], ...] = ([], ["best"], ["baseline"], ["trial=12"])
    assert [choice_of(split_choice(words)[1]) for words in asked] == ["advised", "best", "baseline", "12"]


@pytest.mark.parametrize(
    "words", [["trial=x"], ["trial="], ["trial=-1"], ["best", "trial=1"], ["trial=1", "trial=2"]]
)
def test_what_makes_no_sense_is_refused(words: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"trial"):
        choice_of(split_choice(words)[1])


def test_the_command_line_offers_every_format() -> None:
    assert all(name in USAGES["export"].text or name in FORMATS for name in FORMATS)
    with pytest.raises(SystemExit):
        main(["export", "--format", "toml"])
