"""Whole sweeps of the real command over SSH: the rehearsed night, and one whose owner's machine dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweeper.records import TrialState
from sweeper.storing.storage import StudyStore
from tests.gpu_host.host import GpuHost, make_host
from tests.launchers.conftest import stat, until
from tests.sglang.night import overrides, sshd_path
from tests.ssh.sshd import Sshd

pytestmark = [pytest.mark.host, pytest.mark.slow]
TIMEOUT_S = 280


@pytest.fixture
def host(tmp_path: Path) -> GpuHost:
    return make_host(tmp_path / "gpu-host", time_scale="0.01", wait_scale="0.01")


@pytest.fixture
def sshd(host: GpuHost, tmp_path: Path) -> Iterator[Sshd]:
    with Sshd(tmp_path / "sshd", env={"PATH": sshd_path(host)}) as sshd:
        yield sshd


def test_the_rehearsed_night_shows_what_it_must(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "tests.sglang.rehearse",
        "--folder",
        str(tmp_path / "rehearsal"),
        "--trials",
        "6",
    ]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    assert "No gain over the baseline" in ended.stdout
    assert "silent_bypass" in ended.stdout


def sweep(folder: Path, words: list[str]) -> subprocess.Popen[str]:
    argv = [
        sys.executable,
        "-m",
        "sweeper",
        "run",
        "--plain",
        *words,
        "budget.trials=3",
        "budget.confirm_launches=0",
    ]
    return subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def servers(host: GpuHost) -> set[str]:
    """The main processes whose children hold GPU memory."""
    return {fields[1] for pid in host.gpu_pids() if (fields := stat(pid))}


def patiently(condition: Callable[[], bool], what: str) -> None:
    """As `until`, for two minutes: a command that starts on a busy machine takes its time."""
    for _ in range(9000):
        if condition():
            return
        threading.Event().wait(0.01)
    until(condition, what)


@pytest.mark.parametrize("when", ["loading", "measuring"])
def test_a_killed_orchestrator_leaves_a_server_that_the_next_start_stops_first(
    host: GpuHost, sshd: Sshd, tmp_path: Path, when: str
) -> None:
    words = overrides(host, sshd, tmp_path)
    if when == "loading":
        host.set_fault("slow_weights", "4", launches=1)
    first = sweep(tmp_path, words)
    log = tmp_path / "kimi_k25_eagle3_8gpu.log"
    patiently(lambda: bool(host.gpu_pids()) and log.exists(), "a server holds GPU memory")
    if when == "measuring":
        threading.Event().wait(2.0)  # any moment of the benchmark will do
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=30)
    left = servers(host)
    assert len(left) == 1, "the server outlives who started it"
    most: list[int] = []
    over = threading.Event()

    def count() -> None:
        while not over.wait(0.05):
            most.append(len(servers(host)))

    counting = threading.Thread(target=count)
    counting.start()
    second = sweep(tmp_path, words)
    output, _ = second.communicate(timeout=TIMEOUT_S)
    over.set()
    counting.join()
    assert second.returncode == 0, output
    assert "which an earlier process had left" in output
    assert max(most) == 1, "never two servers"
    store = StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", "kimi_k25_eagle3_8gpu", str(tmp_path), create=False)
    trials = store.trials()
    assert [trial.number for trial in trials] == [0, 1, 2]
    assert all(trial.state is TrialState.COMPLETE for trial in trials)
    assert servers(host) == set()
