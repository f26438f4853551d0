"""`specsweep report`: which files it writes, and what it says of mistakes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.errors import ExitCode
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import FINGERPRINT, fill, won_night

pytestmark = [pytest.mark.study, pytest.mark.compose]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the studies `night` and `again`, and one of the first name in another folder."""
    root = tmp_path_factory.mktemp("studies")
    for place, name in ((root / "here", "night"), (root / "here", "again"), (root / "there", "night")):
        fill(StudyStore.open(f"sqlite:///{place}/optuna.db", name, str(place), create=True), won_night())
    return root


@pytest.fixture
def folder(studies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them, where the command is run."""
    shutil.copytree(studies, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    return main(["report", "study.dir=here", "study.name=night", *words])


def test_both_kinds_are_written_and_their_paths_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == ExitCode.OK
    paths = capsys.readouterr().out.splitlines()
    assert [Path(path).name for path in paths] == ["night-report.html", "night-report.md"]
    assert "<!DOCTYPE html>" in (folder / paths[0]).read_text(encoding="utf-8")[:200]
    assert (folder / paths[1]).read_text(encoding="utf-8").startswith("# Sweep night")


def test_one_kind_is_written_where_it_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--output", "x/page.html") == ExitCode.OK
    assert run("--output", "x/text.md") == ExitCode.OK
    assert {path.name for path in (folder / "x").iterdir()} == {"page.html", "text.md"}
    capsys.readouterr()
    assert run("--output", "-") == ExitCode.OK
    assert capsys.readouterr().out == (folder / "x/text.md").read_text(encoding="utf-8")


def test_another_ending_is_refused_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--output", "night.pdf"]) == ExitCode.USAGE
    assert "--output: 'night.pdf' must end with .html or .md" in capsys.readouterr().err


def test_studies_are_compared_by_name_and_by_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--with", "again", "--with", f"{folder}/there:night") == ExitCode.OK
    paths = capsys.readouterr().out.splitlines()
    assert [Path(path).name for path in paths] == ["night-comparison.html", "night-comparison.md"]
    assert (folder / paths[1]).read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        pytest.param(
            "postgresql://me:secret@127.0.0.1:9/x:night",
            "--with ...:night: study.storage: 'postgresql+psycopg://***@127",
            marks=pytest.mark.host,
        ),
        ("nonesuch", "--with nonesuch: study.name: 'nonesuch'"),
        ("/nowhere:night", "--with /nowhere:night: study.storage"),
    ],
)
def test_a_study_that_is_not_there_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], asked: str, told: str
) -> None:
    is_away = asked.startswith("postgresql")  # nobody answers: what was asked may be right
    assert run("--with", asked) == (ExitCode.ABORTED if is_away else ExitCode.USAGE)
    said = capsys.readouterr().err
    assert told in said
    assert "secret" not in said
    assert not list((folder / "here").glob("*.html"))


def test_studies_ranked_by_other_numbers_are_one_mistake(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = StudyStore.open(f"sqlite:///{folder}/here/optuna.db", "again", str(folder / "here"), create=False)
    store.set_fact("fingerprint", {**FINGERPRINT, "objective": "decode_throughput"})
    assert run("--with", "again") == ExitCode.USAGE
    assert "ranked by decode_throughput and by output_throughput" in capsys.readouterr().err
