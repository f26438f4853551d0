"""The whole command on two hosts: the real engine, the real database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sweeper.records import TrialState
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_place import Place
from tests.sweep.runner import SweepFolder, finish

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HOST = "defaults: [local]\nname: {name}\nstate_dir: {folder}/state-{name}\nport_low: {low}\nport_high: {high}\n"


def test_one_command_drives_two_hosts_and_leaves_one_study(database: str, tmp_path: Path) -> None:
    hosts = tmp_path / "my" / "host"
    hosts.mkdir(parents=True)
    for name, low in (("left", 18400), ("right", 18500)):
        text = HOST.format(name=name, folder=tmp_path, low=low, high=low + 50)
        (hosts / f"{name}.yaml").write_text(text)
    folder = SweepFolder(tmp_path)
    words = [f'study.storage="{database}"', "budget.trials=4", "budget.confirm_launches=0", "hosts=[left,right]"]
    done = finish(folder.start("run", "--config-dir", "my", "preset=llamacpp_smoke", *words))
    assert done.code == 0, done.output
    lines = [line for line in done.output.splitlines() if line]
    assert {line.partition("|")[0].strip() for line in lines} == {"left", "right"}
    assert "only%20for%20tests" not in done.output
    assert "only for tests" not in done.output
    store = StudyStore.open(database, "llamacpp_smoke", Place(str(tmp_path / "sweeps")), create=False)
    trials = store.trials()
    assert [trial.number for trial in trials] == [0, 1, 2, 3]
    assert all(trial.state is not TrialState.RUNNING for trial in trials)
    assert {launch.host for launch in trials[0].launches} == {"left", "right"}
    assert (tmp_path / "sweeps" / "llamacpp_smoke.left.log").exists()
    report = finish(folder.start("report", "preset=llamacpp_smoke", words[0], "--output", "-"))
    assert "All values are on the scale of host" in report.output
    assert folder.servers() == []


def test_ctrl_c_ends_all_workers_and_their_servers(database: str, tmp_path: Path) -> None:
    hosts = tmp_path / "my" / "host"
    hosts.mkdir(parents=True)
    for name, low in (("left", 18600), ("right", 18700)):
        text = HOST.format(name=name, folder=tmp_path, low=low, high=low + 50)
        (hosts / f"{name}.yaml").write_text(text)
    folder = SweepFolder(tmp_path)
    argv = [
        "run",
        "--config-dir",
        "my",
        "preset=llamacpp_smoke",
        f'study.storage="{database}"',
        "hosts=[left,right]",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "sweeper", *argv], cwd=tmp_path, env=folder.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if "trial 0" in line:
            os.kill(process.pid, signal.SIGTERM)
            break
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 143, output
    assert folder.servers() == []
