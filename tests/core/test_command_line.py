"""The command line without a server: help, mistakes, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.errors import ExitCode
from sweeper.usage.table import USAGES


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", list(USAGES))
def test_the_help_of_every_command_has_examples_and_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"  specsweep {command}" in text
    assert "143  ended by SIGTERM" in text
    assert max(map(len, text.splitlines())) <= 115


def test_every_exit_code_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for code in ExitCode:
        assert f"{code.value}  " in text, code


def test_mistakes_are_one_message_on_standard_error_and_start_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", "budget.trails=20", "workload.repeats=two", "preset=nonesuch"])
    told = capsys.readouterr()
    assert code == ExitCode.USAGE
    assert told.out == ""
    assert "Traceback" not in told.err
    assert "nonesuch" in told.err
    assert list(tmp_path.iterdir()) == []


def test_all_mistakes_in_values_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "budget.trails=20", "workload.repeats=two"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert "budget.trails" in told
    assert "trials" in told
    assert "workload.repeats" in told


@pytest.mark.parametrize("words", [["run", "-m"], ["run", "--multirun", "budget.trials=1,2"]])
def test_multirun_is_explained(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == ExitCode.USAGE
    assert "specsweep sweeps by itself" in capsys.readouterr().err


def test_an_option_may_stand_between_overrides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "study.name=x", "--output", "-", "study.dir=nowhere"]) == ExitCode.USAGE
    assert "study.storage: 'sqlite:///nowhere/optuna.db' does not exist" in capsys.readouterr().err


def test_an_unknown_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--plian"])
    assert ended.value.code == ExitCode.USAGE
    assert "--plian" in capsys.readouterr().err


def test_a_report_of_a_study_that_does_not_exist_names_those_that_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sweeper.storing.storage import StudyStore

    StudyStore.open(f"sqlite:///{tmp_path}/sweeps/optuna.db", "tuesday", f"{tmp_path}/sweeps", create=True)
    assert main(["report", "study.name=tusday"]) == ExitCode.USAGE
    assert "its studies: tuesday" in capsys.readouterr().err


def test_a_bug_is_one_line_and_a_traceback_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sweeper.__main__ import _ended

    assert _ended(_raised(ZeroDivisionError("by nought"))) == ExitCode.BUG
    told = capsys.readouterr().err
    assert "a bug in specsweep: ZeroDivisionError: by nought" in told
    assert "Traceback (most recent call last)" in (tmp_path / "specsweep-error.log").read_text()


def test_the_launchers_errors_have_their_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    from launchers.errors import HostBusy, HostLost, StopFailed
    from sweeper.__main__ import _ended

    assert _ended(HostBusy("pid 7 holds it", "pid 7")) == ExitCode.HOST_BUSY
    assert _ended(StopFailed("still alive", ("pid 8 python",))) == ExitCode.ABORTED
    assert _ended(HostLost("no answer")) == ExitCode.ABORTED
    assert _ended(OSError(28, "No space left on device")) == ExitCode.ABORTED
    assert "pid 8 python" in capsys.readouterr().err


def _raised(error: Exception) -> Exception:
    """The error with a traceback, as it would be caught."""
    try:
        raise error
    except ZeroDivisionError as caught:
        return caught
