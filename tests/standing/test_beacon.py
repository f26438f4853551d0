from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sweeper.deciding.plan import Progress, progress
from sweeper.records import Proposal, Purpose
from sweeper.spec import BudgetSpec, ServerConfig
from sweeper.standing.beacon import MAX_BYTES, Beacon, Note, notes
from sweeper.standing.process import ProcessId, is_alive, this_process
from tests.fakes import FakeClock, launch, trial

OBJECTIVE = "output_throughput"


def state() -> Progress:
    return progress((trial(0, [50]),), BudgetSpec(trials=4, finalists=1, confirm_launches=1), OBJECTIVE, True)


def proposal(number: int = 1) -> Proposal:
    made = ServerConfig(flags={"n": 3})
    return Proposal(trial_number=number, launch_number=0, purpose=Purpose.SEARCH, requested=made, canonical=made)


def beacon(folder: Path, clock: FakeClock | None = None, worker: str = "gpu1") -> Beacon:
    return Beacon(folder, "night", worker, clock or FakeClock(), OBJECTIVE)


def only(folder: Path) -> Note:
    (found,) = notes(folder, "night")
    return found


def test_the_running_launch_and_its_phase_are_written_down(tmp_path: Path) -> None:
    clock = FakeClock()
    view = beacon(tmp_path, clock)
    view.sweep_started("night", state(), ServerConfig())
    view.launch_started(proposal(), state())
    clock.sleep(5)
    view.phase("loading model")
    now = only(tmp_path).now
    assert (now.trial, now.launch, now.purpose, now.phase) == (1, 0, "search", "loading model")
    assert now.title == "trial 1: n3"
    assert now.phase_began_at == clock.now()
    assert now.is_alive is True
    left = only(tmp_path).left
    assert left is not None
    assert (left.trials_total, left.launches, left.eta_s) == (4, 5, 50.0)


def test_after_a_launch_nothing_is_said_to_run_and_the_next_one_knows_what_to_expect(tmp_path: Path) -> None:
    clock = FakeClock()
    view = beacon(tmp_path, clock)
    for _ in range(2):
        view.launch_started(proposal(), state())
        view.phase("loading model")
        clock.sleep(30)
        view.launch_ended(launch(50, trial=1), state())
        assert (only(tmp_path).now.trial, only(tmp_path).now.phase) == (None, "between launches")
    view.phase("loading model")
    assert only(tmp_path).now.expected_s == 30


def test_the_end_of_the_night_is_a_moment_that_stays_while_time_goes(tmp_path: Path) -> None:
    clock = FakeClock()
    with beacon(tmp_path, clock) as told:
        told.sweep_started("night", replace(state(), night_left_s=3600.0), ServerConfig())
        end = clock.now() + timedelta(hours=1)
        assert (left := only(tmp_path).left) is not None
        assert left.deadline_at == end
        clock.sleep(600)
        told.launch_started(proposal(), replace(state(), night_left_s=3000.0))
        assert (left := only(tmp_path).left) is not None
        assert left.deadline_at == end
        told.launch_ended(launch(50, trial=1), state())
        assert (left := only(tmp_path).left) is not None
        assert left.deadline_at is None


def test_at_the_end_the_phase_is_taken_out_and_what_is_left_stays(tmp_path: Path) -> None:
    with beacon(tmp_path) as view:
        view.launch_started(proposal(), state())
        view.synced(7, "down")
    found = only(tmp_path)
    assert (found.now.trial, found.now.phase) == (None, "")
    assert found.left is not None
    assert found.mlflow is not None
    assert (found.mlflow.behind, found.mlflow.error) == (7, "down")


def test_workers_of_one_study_have_files_of_their_own_whose_names_lead_nowhere(tmp_path: Path) -> None:
    for worker in ("gpu1", "../../gpu2", "gpu/3"):
        beacon(tmp_path, worker=worker).phase("starting")
    assert len(notes(tmp_path, "night")) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["night-status"]


def test_nobody_is_believed_alive_who_is_not_that_very_process() -> None:
    me = this_process()
    assert is_alive(me) is True
    assert is_alive(me.model_copy(update={"start_time": "1"})) is False  # the pid was given again
    assert is_alive(me.model_copy(update={"boot_id": "another boot"})) is False
    assert is_alive(me.model_copy(update={"machine": "elsewhere"})) is None


def test_without_proc_the_pid_alone_decides(tmp_path: Path) -> None:
    me = this_process(tmp_path)
    assert (me.start_time, me.boot_id) == ("", "")
    assert is_alive(me, tmp_path) is True
    gone = ProcessId(machine=me.machine, pid=2**22 + 1, start_time="", boot_id="")
    assert is_alive(gone, tmp_path) is False


@pytest.mark.parametrize("content", ["", "{", "[]", '{"process": 1}', "\x00", "x" * (MAX_BYTES + 10)])
def test_a_file_that_is_no_note_is_left_out(tmp_path: Path, content: str) -> None:
    beacon(tmp_path).phase("starting")
    (tmp_path / "night-status" / "zz.json").write_text(content)
    assert len(notes(tmp_path, "night")) == 1


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "night-status").write_text("a file")
    view = beacon(tmp_path)
    view.phase("starting")
    view.synced(0, "")
    assert notes(tmp_path, "night") == []


def test_what_a_server_says_is_bounded(tmp_path: Path) -> None:
    view = beacon(tmp_path)
    view.phase("\x1b[31m" + "x" * 100_000)
    view.synced(1, "e" * 100_000)
    written = (tmp_path / "night-status" / "gpu1.json").read_text()
    assert len(written) < MAX_BYTES
    assert "\\u001b" not in written
    assert json.loads(written)["now"]["phase"].startswith("xxx")
