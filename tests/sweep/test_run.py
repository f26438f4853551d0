"""The real command with the real engine: how it ends, and what it leaves behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest

from sweeper.interrupts import FIRST_PRESS
from sweeper.records import Purpose, TrialState
from tests.sweep.campaign import campaign
from tests.sweep.runner import SweepFolder, finish, wait_until

pytestmark = [pytest.mark.engine]


def in_benchmark(folder: SweepFolder, process: subprocess.Popen[str]) -> None:
    """Wait until a server of this folder runs."""
    wait_until(lambda: bool(folder.servers()), process, "a server")


def test_a_sweep_runs_to_a_verdict_and_a_second_start_says_it_is_complete(folder: SweepFolder) -> None:
    first = folder.run("budget.confirm_launches=2")
    assert first.code == 0, first.output
    trials = folder.trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 3
    assert trials[0].is_baseline
    assert all("stop_s" in launch.metrics for trial in trials for launch in trial.launches)
    drafted = [trial.launches[0].metrics.get("num_drafted_tokens", 0) for trial in trials]
    assert drafted[0] == 0
    assert min(drafted[1:]) > 0
    count = sum(len(trial.launches) for trial in trials)
    purposes = [launch.purpose for trial in trials for launch in trial.launches]
    assert purposes.count(Purpose.CONFIRM) == count - 3 >= 4
    assert re.search(r"No gain over the baseline|Winner|Tie", first.output)
    assert folder.runs() == ["0", "1", "2"]
    page = re.search(r"Look next:  (\S+-report\.html)", first.output)
    assert page is not None, first.output
    assert "</html>" in (folder.directory / page[1]).read_text(encoding="utf-8")

    second = folder.run("budget.confirm_launches=2")
    assert second.code == 0
    assert "complete already" in second.output
    assert sum(len(trial.launches) for trial in folder.trials()) == count

    report = finish(folder.start("report", "preset=llamacpp_smoke", "--output", "-"))
    assert report.code == 0, report.output
    assert "Winner" in report.output or "No gain" in report.output or "Tie" in report.output


@pytest.mark.slow
def test_changed_settings_are_refused_with_what_changed(folder: SweepFolder) -> None:
    assert folder.run("budget.trials=1").code == 0
    refused = folder.run("budget.trials=1", "workload.max_tokens=17")
    assert refused.code == 3
    assert re.search(r"workload\.max_tokens: \d+ then, 17 now", refused.output)
    assert "study.name=" in refused.output
    assert len(folder.trials()) == 1


@pytest.mark.slow
def test_one_ctrl_c_finishes_the_launch_and_the_sweep_goes_on_later(folder: SweepFolder) -> None:
    process = folder.sweep()
    in_benchmark(folder, process)
    os.kill(process.pid, signal.SIGINT)
    ended = finish(process)
    assert ended.code == 130, ended.output
    assert FIRST_PRESS in ended.output
    assert len(folder.finished()) == 1
    assert folder.servers() == []
    assert folder.run().code == 0
    assert len(folder.finished()) == 3


def test_two_ctrl_c_abandon_the_launch_and_stop_its_server(folder: SweepFolder) -> None:
    process = folder.sweep()
    in_benchmark(folder, process)
    os.kill(process.pid, signal.SIGINT)
    # Two signals of a kind that arrive together are one: the second press comes after the answer to the first.
    wait_until(lambda: FIRST_PRESS in folder.log(), process, "the answer to the first press")
    os.kill(process.pid, signal.SIGINT)
    ended = finish(process)
    assert ended.code == 130, ended.output
    assert folder.servers() == []
    assert folder.finished() == {}


def test_sigterm_stops_the_server_and_ends_with_143(folder: SweepFolder) -> None:
    process = folder.sweep()
    in_benchmark(folder, process)
    process.terminate()
    ended = finish(process)
    assert ended.code == 143, ended.output
    assert folder.servers() == []


def test_a_second_process_on_the_same_host_is_refused(folder: SweepFolder) -> None:
    process = folder.sweep()
    in_benchmark(folder, process)
    second = folder.run("study.name=other")
    assert second.code == 4, second.output
    assert str(process.pid) in second.output
    elsewhere = finish(
        folder.sweep(f"host.state_dir={folder.directory}/other")
    )  # another lock of the host, the same study
    assert elsewhere.code == 4, elsewhere.output
    assert "study llamacpp_smoke" in elsewhere.output
    process.terminate()
    finish(process)


@pytest.mark.slow
def test_mlflow_that_cannot_be_reached_holds_nothing_up_and_is_caught_up_later(folder: SweepFolder) -> None:
    away = folder.run("tracking.uri=http://127.0.0.1:9")
    assert away.code == 0, away.output
    assert "MLflow" in away.output
    back = folder.run()
    assert back.code == 0
    assert folder.runs() == ["0", "1", "2"]


@pytest.mark.slow
def test_a_server_that_is_killed_during_its_benchmark_is_tried_again(folder: SweepFolder) -> None:
    process = folder.sweep("budget.trials=1", "workload.repeats=4", "workload.max_repeats=0")
    in_benchmark(folder, process)
    subprocess.run(["pkill", "-9", "-f", f"llamacpp_server.*{_nonce(folder)}"], check=True)
    ended = finish(process)
    assert ended.code == 0, ended.output
    (baseline,) = folder.trials()
    assert [launch.ok for launch in baseline.launches] == [False, True]


def test_a_model_that_is_missing_is_one_message_before_anything_starts(folder: SweepFolder) -> None:
    refused = folder.run("model=gguf", "model.path=/nowhere/model.gguf")
    assert refused.code == 2, refused.output
    assert "model.path: '/nowhere/model.gguf'" in refused.output
    assert folder.trials() == ()


def test_three_kills_lose_nothing(folder: SweepFolder) -> None:
    figures = campaign(folder, kills=3, seed=7)
    assert (figures.lost, figures.duplicated, figures.servers_left, figures.unfinished) == (0, 0, 0, 0)
    assert figures.runs == figures.trials


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_kills_lose_nothing(folder: SweepFolder) -> None:
    figures = campaign(folder, kills=20, seed=1)
    print(figures.lines())
    assert (figures.lost, figures.duplicated, figures.servers_left, figures.unfinished) == (0, 0, 0, 0)
    assert figures.runs == figures.trials


def _nonce(folder: SweepFolder) -> str:
    words = folder.servers()[0].split()
    return words[words.index("--alias") + 1]
