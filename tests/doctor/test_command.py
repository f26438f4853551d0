"""The command itself: the embedded sweep, the stand-in host over SSH, exit codes, JSON; nothing changes."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweeper.__main__ import main
from sweeper.commands.hosts import make_launcher
from sweeper.config import load
from sweeper.errors import ExitCode
from tests.gpu_host.host import GpuHost, make_host
from tests.launchers.conftest import unused_port
from tests.sglang.night import overrides, sshd_path
from tests.ssh.sshd import Sshd, make_key

pytestmark = pytest.mark.compose
NARROW = (
    "space.speculative_num_draft_tokens=choice(4,5)",
    "space.speculative_num_steps=choice(2,3)",
    "~space.env",
)
"""Fewer combinations: this is not about the rules."""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    """The exit code and the JSON of `specsweep doctor --json`."""
    capsys.readouterr()
    code = main(["doctor", "--json", *words])
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    report = json.loads(told.out)
    assert report["exit_code"] == code
    assert report["ready"] == (code == 0)
    return code, report


def of(report: Any, check: str) -> list[tuple[str, str]]:
    return [(each["level"], each["reason"]) for each in report["findings"] if each["check"] == check]


def errors(report: Any) -> list[str]:
    return [each["check"] for each in report["findings"] if each["level"] == "error"]


def test_settings_that_are_wrong_are_exit_code_2_and_all_else_waits(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = asked(capsys, "budget.trails=3", "workload.repeats=two")
    assert code == ExitCode.USAGE
    assert [level for level, _ in of(report, "configuration")] == ["error", "error"]
    assert of(report, "login") == [("waiting", "waits for configuration")]
    assert list(Path().iterdir()) == []


@pytest.mark.engine
def test_the_embedded_sweep_is_ready_on_a_fresh_clone(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = asked(capsys)
    assert (code, errors(report)) == (ExitCode.OK, [])
    assert report["hosts"] == ["local"]
    assert [level for level, _ in of(report, "rules")] == ["ok"]
    assert list(Path().iterdir()) == []
    assert list(Path(os.environ["XDG_STATE_HOME"]).iterdir()) == []


@pytest.mark.engine
def test_a_host_that_is_held_must_be_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    with make_launcher(load([]).spec.host).hold():
        code, report = asked(capsys)
    assert code == ExitCode.ABORTED
    assert errors(report) == ["lock"]
    assert report["fixes"] == ["wait for its end, or end that process (lock on local)"]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> GpuHost:
    return make_host(tmp_path_factory.mktemp("gpu") / "gpu-host", time_scale="0.01", wait_scale="0.01")


@pytest.fixture(scope="module")
def sshd(host: GpuHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with Sshd(tmp_path_factory.mktemp("sshd") / "sshd", env={"PATH": sshd_path(host)}) as sshd:
        yield sshd


def listing(*folders: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder with its size and the moment of its last change."""
    found = {}
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            with contextlib.suppress(FileNotFoundError):
                state = path.lstat()
                found[str(path)] = (state.st_size if path.is_file() else 0, state.st_mtime_ns)
    return found


def processes(word: str) -> set[str]:
    """Command lines that hold a word."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word.encode() in (line := path.read_bytes()):
                found.add(line.decode(errors="replace"))
    return found


@pytest.mark.host
def test_a_host_over_ssh_is_ready_and_nothing_on_it_changes(
    host: GpuHost, sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*overrides(host, sshd, tmp_path / "study"), *NARROW]
    (tmp_path / "study").mkdir()
    looked = (host.folder, sshd.home, tmp_path)
    before, running = listing(*looked), processes(str(host.folder))
    code, report = asked(capsys, *words)
    assert (code, errors(report)) == (ExitCode.OK, [])
    assert listing(*looked) == before
    assert processes(str(host.folder)) == running
    assert [reason for _, reason in of(report, "gpu_count")] == ["the server takes 8 of 8"]
    assert [level for level, _ in of(report, "model_config")] == ["ok"] * 3


@pytest.mark.host
def test_what_is_wrong_on_the_host_is_told_together(
    host: GpuHost, sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.occupy(3, 40_000, os.getpid())
    host.set_sensors(5, temperature__gpu="93", ecc__errors__uncorrected__volatile__total="4")
    words = [
        *overrides(host, sshd, tmp_path),
        *NARROW,
        f"host.state_dir={host.python}/state",
        "engine.flags.tp_size=16",
    ]
    try:
        code, report = asked(capsys, *words)
    finally:
        host.occupy(3, 0, os.getpid())
    assert code == ExitCode.USAGE  # tp_size is a setting
    assert errors(report) == ["state_dir", "gpu_count", "gpu_memory"]
    assert f"pid {os.getpid()} of {getpass.getuser()}: " in of(report, "gpu_memory")[0][1]
    assert of(report, "gpu_errors")[0] == (
        "warning",
        "GPU 5: 4 uncorrected ECC errors since the driver was loaded",
    )
    assert "GPU 5 has 93 °C" in [reason for _, reason in of(report, "gpu_heat")]


@pytest.mark.host
def test_a_wrong_key_must_be_mended_first(
    host: GpuHost, sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = make_key(tmp_path / "other")
    words = [*overrides(host, sshd, tmp_path), *NARROW, f"host.ssh.identity_file={key}"]
    code, report = asked(capsys, *words)
    assert (code, errors(report)) == (ExitCode.ABORTED, ["login"])
    assert of(report, "gpus") == [("waiting", "waits for login")]
    assert [level for level, _ in of(report, "mlflow")] == ["ok"]  # what needs no host is looked at all the same


@pytest.mark.host
def test_the_engines_program_must_run(
    host: GpuHost, sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        *overrides(host, sshd, tmp_path),
        *NARROW,
        "engine.command=[/nowhere/python, -m, sglang.launch_server]",
    ]
    code, report = asked(capsys, *words, f"model.path={host.model('gone')}")
    assert (code, errors(report)) == (ExitCode.USAGE, ["engine", "model"])
    assert of(report, "rules") == [("waiting", "waits for engine, model")]


@pytest.mark.host
def test_each_host_of_a_server_is_looked_at(
    host: GpuHost, sshd: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = tmp_path / "config"
    more.write_text(sshd.config("gpu1").read_text() + f"Host gpu2\n  HostName 127.0.0.1\n  Port {unused_port()}\n")
    nodes = ["host.nodes=[gpu2]", "host.node_address='10.0.0.1:20000'", f"host.ssh.config_file={more}"]
    _, report = asked(capsys, *overrides(host, sshd, tmp_path), *NARROW, *nodes)
    found = {(each["check"], each["host"]): each["level"] for each in report["findings"]}
    assert (found["reach", "gpu1"], found["reach", "gpu1/gpu2"]) == ("ok", "error")
    assert found["gpus", "gpu1/gpu2"] == "waiting"
    assert found["study", ""] == "ok"
