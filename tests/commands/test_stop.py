"""`specsweep stop`: the right process is asked, once, and waited for. Real processes, and a real database."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweeper.__main__ import main
from sweeper.errors import ExitCode
from sweeper.standing.asking import ask_to_end
from sweeper.standing.process import ProcessId, is_alive, this_process
from tests.commands.conftest import MakeStudy
from tests.fleet.conftest import database as database
from tests.fleet.conftest import postgres as postgres
from tests.fleet.crew import Fleet

WORKER = """
import sys, time
from pathlib import Path
from launchers.clock import SystemClock
from sweeper.interrupts import Interrupts
from sweeper.standing.beacon import Beacon
interrupts = Interrupts(lambda text: print(text, flush=True))
with interrupts.installed(), Beacon(Path("sweeps"), "night", "gpu1", SystemClock(), "output_throughput") as beacon:
    beacon.phase("measuring")
    print("begun", flush=True)
    while not interrupts.finish_requested:
        time.sleep(0.02)
    time.sleep(0.3)
print("ended in good order", flush=True)
"""


def worker() -> subprocess.Popen[str]:
    """A process that works on the study `night` until it is asked to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def identity(pid: int) -> ProcessId:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return this_process().model_copy(update={"pid": pid, "start_time": fields[19]})


@pytest.mark.host
def test_a_running_sweep_ends_in_good_order_and_is_waited_for(
    make_study: MakeStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    make_study()
    process = worker()
    assert main(["stop", "study.name=night", "--json"]) == ExitCode.OK
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert [each["pid"] for each in answer["asked"]] == [process.pid]
    assert "study night has stopped: 1" in answer["done"][0]
    assert f"waiting for pid {process.pid} on" in told.err
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.count("Asked to stop") == 1
    assert output.endswith("ended in good order\n")


@pytest.mark.host
def test_now_abandons_the_launch(make_study: MakeStudy) -> None:
    make_study()
    process = worker()
    assert main(["stop", "study.name=night", "--now"]) == ExitCode.OK
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "ended in good order" not in output


@pytest.mark.host
def test_a_sweep_whose_study_cannot_be_read_is_asked_all_the_same(
    make_study: MakeStudy, capsys: pytest.CaptureFixture[str]
) -> None:
    make_study()
    process = worker()
    Path("sweeps/optuna.db").write_bytes(b"noise" * 4000)
    assert main(["stop", "study.name=night"]) == ExitCode.OK
    assert "study night has stopped" in capsys.readouterr().out
    assert process.communicate(timeout=60)[0].endswith("ended in good order\n")
    assert main(["stop", "study.name=night"]) == ExitCode.ABORTED
    assert "'sqlite:///sweeps/optuna.db' cannot be opened: file is not a database" in capsys.readouterr().err


@pytest.mark.study
def test_a_study_that_is_none_is_said(make_study: MakeStudy, capsys: pytest.CaptureFixture[str]) -> None:
    make_study()
    assert main(["stop", "study.name=nigth"]) == ExitCode.USAGE
    assert "there is no study 'nigth' in sweeps" in capsys.readouterr().err


@pytest.mark.host
def test_asking_twice_is_as_once() -> None:
    process = worker()
    for _ in range(3):
        ask_to_end(identity(process.pid), now=False)
    output, _ = process.communicate(timeout=60)
    assert output.endswith("ended in good order\n")


@pytest.mark.host
def test_only_that_very_process_is_asked_and_only_if_it_listens() -> None:
    process = subprocess.Popen([sys.executable, "-c", "print('up', flush=True); input()"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    really = identity(process.pid)
    assert is_alive(really)
    for other in (
        really.model_copy(update={"start_time": "1"}),  # the number was given again
        really.model_copy(update={"boot_id": "another boot"}),
        really.model_copy(update={"machine": "elsewhere"}),
        really,  # has no handler, and would die of the signal
    ):
        assert ask_to_end(other, now=False) is False
        assert ask_to_end(other, now=True) is False
    assert process.poll() is None
    process.kill()
    process.communicate()
    assert ask_to_end(really, now=True) is False


@pytest.mark.slow
def test_all_workers_of_a_shared_study_end_after_their_launch(database: str, tmp_path: Path) -> None:
    fleet = Fleet(database, tmp_path / "elsewhere", trials=60, launch_s=0.5)
    workers = [fleet.start(host) for host in "ab"]
    try:
        for each in workers:
            each.wait_for("launch")
        place = [f"study.storage={database!r}".replace("'", '"'), "study.name=night", f"study.dir={tmp_path}"]
        assert main(["stop", *place]) == ExitCode.OK
        assert [each.end() for each in workers] == [0, 0]
        assert all("Asked to stop" in each.output for each in workers)
        count = sum(len(trial.launches) for trial in fleet.records())
        assert count < 60
        again = fleet.start("a")  # an earlier request is for the workers of then
        for _ in range(2):
            again.wait_for("launch")
        time.sleep(0.1)
        assert again.process.poll() is None
    finally:
        fleet.end_all()
