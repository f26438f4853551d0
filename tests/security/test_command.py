"""The real command, engine and MLflow: every file, every word shown and every process list is searched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from sweeper.__main__ import main
from sweeper.errors import ExitCode
from tests.security.planted import (
    CLOUD_KEY,
    COMMAND_KEY,
    INHERITED,
    PASSPHRASE,
    PASSWORD,
    PROXY_PASSWORD,
    TOKEN,
    found_below,
    found_in,
)
from tests.sweep.runner import SweepFolder, finish

PLANTED = {
    "PLANTED_TOKEN": TOKEN,
    "MLFLOW_TRACKING_TOKEN": INHERITED,
    "AWS_SECRET_ACCESS_KEY": CLOUD_KEY,
    "HTTPS_PROXY": f"http://someone:{PROXY_PASSWORD}@127.0.0.1:9",
    "SPECSWEEP_SSH_PASSPHRASE": PASSPHRASE,
}
STORAGE = f"study.storage=postgresql+psycopg://someone:{quote(PASSWORD, safe='')}@127.0.0.1:9/none"
WORDS = (
    "engine.env.HF_TOKEN='${oc.env:PLANTED_TOKEN}'",
    f"engine.env.OTHER_SECRET={COMMAND_KEY}",
    "budget.trials=2",
)


class PlantedFolder(SweepFolder):
    """A sweep's folder; its processes inherit the planted secrets."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, **PLANTED}


def command_lines(besides: int, folder: Path) -> list[bytes]:
    """The command lines of all processes that a sweep in `folder` has started, but its own, which was given to it.

    They are known by the folder in their environment: other tests of this machine may show what they read of it.
    """
    own = (Path("/proc") / str(besides) / "cmdline").read_bytes()
    lines = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) not in (os.getpid(), besides):
            try:
                line, environ = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            except OSError:
                continue
            if line != own and os.fsencode(folder) in line + environ:
                lines.append(line)
    return lines


def watched(process: subprocess.Popen[str], folder: Path) -> tuple[dict[str, bytes], int]:
    """The planted secrets that process lists show before the command ends, and where; how many lines were seen."""
    seen: dict[str, bytes] = {}
    num_lines = 0
    while process.poll() is None:
        for line in command_lines(process.pid, folder):
            num_lines += 1
            seen |= dict.fromkeys(found_in(line), line)
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    return seen, num_lines


@pytest.mark.engine
def test_a_whole_sweep_shows_no_secret_anywhere(tmp_path: Path) -> None:
    folder = PlantedFolder(tmp_path)
    process = folder.sweep(*WORDS)
    seen, num_lines = watched(process, tmp_path)
    first = finish(process)
    assert seen == {}
    assert num_lines > 10, "the server was among them"
    assert first.code == 0, first.output
    assert "every user of this machine can read it" in first.output, "it was given on the command line"
    assert found_in(first.output.encode()) == []
    host_files = {str(path): found for path, found in _by_mode(tmp_path).items()}
    assert set(host_files.values()) <= {0o600}, host_files
    (launch, *_) = folder.trials()[0].launches
    assert launch.canonical.env["HF_TOKEN"] == "***"
    again = folder.run(*WORDS)
    assert again.code == 0, again.output
    assert "complete already" in again.output
    report = finish(folder.start("report", "preset=llamacpp_smoke", "--output", "-"))
    assert report.code == 0
    assert found_in(report.output.encode()) == []


def _by_mode(folder: Path) -> dict[Path, int]:
    """The files with a secret in them, which may only be the server's own start files; their modes."""
    found = [Path(path) for path in found_below(folder)]
    assert all(path.name == "cmd" and "servers" in path.parts for path in found), found
    return {path: path.stat().st_mode & 0o777 for path in found}


@pytest.mark.engine
@pytest.mark.slow
def test_an_mlflow_server_that_refuses_and_one_that_is_away_are_told_without_the_password(tmp_path: Path) -> None:
    folder = PlantedFolder(tmp_path)
    uri = f"tracking.uri=http://someone:{quote(PASSWORD, safe='')}@127.0.0.1:9"
    ended = folder.run(*WORDS, uri, "budget.trials=1")
    assert ended.code == 0, ended.output
    assert "MLflow" in ended.output
    assert found_in(ended.output.encode()) == []
    assert _by_mode(tmp_path).keys() <= set(tmp_path.rglob("cmd"))


@pytest.mark.host
@pytest.mark.parametrize("words", [
    (STORAGE,),
    ("engine.env.HF_TOKEN=[" + TOKEN + "]",),
    ("engine.flags.hf_token={a: " + TOKEN + "}",),
    ("space.env.HF_TOKEN=choice(" + TOKEN + ",b)",),
    ("engine.env.HF_TOKEN=" + TOKEN, "study.nmae=x"),
    ("tracking.uri=ftp://someone:" + quote(PASSWORD, safe="") + "@h",),
])  # fmt: skip
def test_a_mistake_is_told_without_the_secret(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command, code = ("report", ExitCode.ABORTED) if words == (STORAGE,) else ("run", ExitCode.USAGE)
    assert main([command, "preset=llamacpp_smoke", *words]) == code
    shown = capsys.readouterr()
    assert ("cannot be opened" if words == (STORAGE,) else "mistake") in shown.err
    assert found_in((shown.out + shown.err).encode()) == []
    assert found_below(tmp_path) == {}


@pytest.mark.host
def test_a_bug_is_written_down_without_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_TOKEN", INHERITED)

    def break_down(_: object) -> None:
        try:
            raise KeyError(f"connecting to http://someone:{PROXY_PASSWORD}@h")
        except KeyError as error:
            raise ArithmeticError(f"with {INHERITED} and api_key={TOKEN}") from error

    monkeypatch.setattr("sweeper.__main__._command", break_down)
    assert main(["report"]) == ExitCode.BUG
    log = (tmp_path / "specsweep-error.log").read_text()
    assert "ArithmeticError: with *** and api_key=***" in log
    assert "http://***@h" in log
    assert found_below(tmp_path) == {}
    assert found_in(capsys.readouterr().err.encode()) == []
