"""`hosts=slurm`: what is asked of Slurm, and how the jobs are watched; Slurm itself is a script of looks here."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from launchers.errors import HostLost
from launchers.shell import LocalShell
from launchers.slurm import Look, SlurmJobs
from sweeper import config
from sweeper.commands.fleet import hosts_of
from sweeper.commands.slurm import as_worker, run_through_slurm, slurm_words
from sweeper.commands.slurm_watch import Watch
from sweeper.errors import ConfigError, ExitCode, SweepInterrupted
from sweeper.spec import StudySpec
from tests.fakes import FakeClock

Looks = dict[str, Look]
WAITS, RUNS, OVER = (
    Look("PENDING", why="Resources"),
    Look("RUNNING", "n1", "None"),
    Look("COMPLETED", "n1", "None"),
)


class ScriptedJobs(SlurmJobs):
    """Slurm answers with `looks`, one after the other; the last one stays. What is cancelled is noted."""

    def __init__(self, *looks: Looks | Callable[[], Looks], results: dict[str, int | None] | None = None) -> None:
        super().__init__(Path("/nowhere"), LocalShell())
        self.looks, self.results = list(looks), results or {}
        self.printed: dict[str, list[str]] = {}
        self.cancelled: list[str] = []

    def look(self) -> Looks:
        said = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return said() if callable(said) else said

    def new_lines(self, job: str) -> list[str]:
        return self.printed.pop(job, [])

    def result(self, job: str) -> int | None:
        return self.results.get(job)

    def cancel(self, *, only_waiting: bool = False) -> None:
        self.cancelled.append("waiting" if only_waiting else "all")


@pytest.fixture
def study(tmp_path: Path) -> StudySpec:
    """A study that nobody has made yet."""
    return StudySpec(
        name="night", dir=str(tmp_path), storage=f"sqlite:///{tmp_path}/none.db", seed=0, startup_trials=1
    )


def watched(jobs: ScriptedJobs, study: StudySpec, *ids: str) -> ExitCode:
    return Watch(jobs, study, FakeClock()).until_all_end(lambda: ids)


def press(then: Looks) -> Callable[[], Looks]:
    """A look during which somebody presses Ctrl-C."""

    def pressed() -> Looks:
        signal.raise_signal(signal.SIGINT)
        return then

    return pressed


def no_answer() -> Looks:
    raise HostLost("slurm_load_jobs error: Unable to contact slurm controller")


def test_lines_of_all_jobs_are_shown_under_their_nodes_and_the_worst_exit_code_counts(
    study: StudySpec, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = ScriptedJobs(
        {"7_0": RUNS, "7_1": WAITS}, {"7_0": OVER, "7_1": Look("COMPLETED", "n2")}, results={"7_0": 0, "7_1": 5}
    )
    jobs.printed["7_0"] = ["trial 0: baseline"]
    assert watched(jobs, study, "7_0", "7_1") is ExitCode.ABORTED
    assert capsys.readouterr().out.splitlines() == [
        "n1 | trial 0: baseline",
        "slurm | job 7_0 runs on n1",
        "slurm | job 7_1 waits: Resources",
        "n1 | ended with exit code 0",
        "n2 | ended with exit code 5",
    ]


def test_a_job_that_slurm_runs_again_has_not_ended(study: StudySpec, capsys: pytest.CaptureFixture[str]) -> None:
    """Its worker of before has returned 143: it was preempted."""
    jobs = ScriptedJobs(
        {"7": RUNS}, {"7": Look("PENDING", why="BeginTime")}, {"7": RUNS}, {"7": OVER}, results={"7": 143}
    )
    assert watched(jobs, study, "7") is ExitCode.TERMINATED
    assert "slurm | job 7 is to run again: BeginTime" in capsys.readouterr().out
    assert jobs.looks == [{"7": OVER}]


def test_jobs_that_still_wait_when_the_sweep_is_complete_are_cancelled_and_do_not_count(study: StudySpec) -> None:
    jobs = ScriptedJobs({"7_0": OVER, "7_1": WAITS}, {"7_0": OVER, "7_1": Look("CANCELLED")}, results={"7_0": 0})
    assert watched(jobs, study, "7_0", "7_1") is ExitCode.OK
    assert jobs.cancelled == ["waiting"]


def test_a_job_that_somebody_else_cancels_is_no_success(study: StudySpec) -> None:
    jobs = ScriptedJobs({"7": WAITS}, {"7": Look("CANCELLED", why="None")})
    assert watched(jobs, study, "7") is ExitCode.ABORTED


def test_the_first_ctrl_c_starts_no_further_job_and_cancels_none_that_runs(study: StudySpec) -> None:
    after = {"7_0": RUNS, "7_1": Look("CANCELLED")}
    jobs = ScriptedJobs(press({"7_0": RUNS, "7_1": WAITS}), after, {**after, "7_0": OVER}, results={"7_0": 130})
    assert watched(jobs, study, "7_0", "7_1") is ExitCode.INTERRUPTED
    assert jobs.cancelled == ["waiting"]


def test_the_second_ctrl_c_cancels_all_and_waits_for_their_end(study: StudySpec) -> None:
    jobs = ScriptedJobs(
        press({"7": RUNS}), press({"7": RUNS}), {"7": RUNS}, {"7": Look("CANCELLED", "n1")}, results={"7": 143}
    )
    with pytest.raises(SweepInterrupted):
        watched(jobs, study, "7")
    assert jobs.cancelled == ["all"]
    assert jobs.looks == [{"7": Look("CANCELLED", "n1")}]


def test_a_slurm_that_does_not_answer_is_asked_again_and_that_is_said_once(
    study: StudySpec, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = ScriptedJobs({"7": RUNS}, no_answer, no_answer, {"7": OVER}, results={"7": 0})
    assert watched(jobs, study, "7") is ExitCode.OK
    assert capsys.readouterr().out.count("no answer, asked again") == 1


def test_a_worker_that_was_killed_has_no_result_to_wait_for(study: StudySpec) -> None:
    jobs = ScriptedJobs({"7": RUNS}, {"7": Look("NODE_FAIL", "n1", "None")})
    assert watched(jobs, study, "7") is ExitCode.ABORTED


def test_a_sigterm_while_the_jobs_are_submitted_leaves_none_behind(study: StudySpec) -> None:
    jobs = ScriptedJobs({"7": RUNS}, {"7": Look("CANCELLED", "n1")}, results={"7": 143})

    def submit() -> tuple[str, ...]:
        signal.raise_signal(signal.SIGTERM)
        return ("7",)

    with pytest.raises(SweepInterrupted):
        Watch(jobs, study, FakeClock()).until_all_end(submit)
    assert jobs.cancelled == ["all"]
    assert jobs.looks == [{"7": Look("CANCELLED", "n1")}]


def test_options_are_sbatch_s_own() -> None:
    words = [
        "slurm.nodes=4",
        "slurm.gpus_per_node=8",
        "slurm.partition=gpu",
        "budget.trials=9",
        "slurm.exclusive=",
    ]
    assert slurm_words(words) == (4, {"gpus-per-node": "8", "partition": "gpu", "exclusive": ""})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "slurm.nodes: '' should be how many nodes get a worker"),
        (["slurm.nodes=none"], "slurm.nodes: 'none' should be how many nodes"),
        (["slurm.nodes=2", "slurm.output=x"], "slurm.output: 'x' is chosen by specsweep"),
        (["slurm.nodes=2", "slurm.comment=a\ntouch /tmp/x"], "should be one line of text"),
        (["slurm.nodes=2", "slurm.Q W=1"], "is not the long name of an option of sbatch"),
    ],
)
def test_words_that_cannot_be_meant_are_named(words: Sequence[str], said: str) -> None:
    with pytest.raises(ConfigError) as seen:
        slurm_words(words)
    assert said in str(seen.value)


def test_other_commands_say_that_they_know_no_nodes() -> None:
    with pytest.raises(ConfigError, match="hosts: slurm is for specsweep run alone"):
        hosts_of(["hosts=slurm", "slurm.nodes=2"])


def arguments(tmp_path: Path, *words: str) -> argparse.Namespace:
    common = ["hosts=slurm", "slurm.nodes=2", f"study.dir={tmp_path}/sweeps", "preset=llamacpp_smoke"]
    return argparse.Namespace(overrides=[*common, *words], config_dir=None)


@pytest.mark.compose
def test_what_is_wrong_is_said_before_anything_is_submitted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="belongs to one process; nodes share postgresql://HOST/DATABASE"):
        run_through_slurm(arguments(tmp_path))
    words = ["study.storage=postgresql://me:secret@db/x", "host=ssh", "host.ssh.destination=gpu1"]
    with pytest.raises(ConfigError) as seen:
        run_through_slurm(arguments(tmp_path, *words))
    assert "host.kind: 'ssh': a node is its worker's own machine" in str(seen.value)
    assert "study.storage: holds a secret, and Slurm's files keep these words" in str(seen.value)
    assert not (tmp_path / "sweeps").exists()


@pytest.mark.compose
@pytest.mark.parametrize("node", ["gpu-07.cluster", "12"])
def test_a_worker_s_host_is_its_node_with_a_state_folder_of_its_own(tmp_path: Path, node: str) -> None:
    words = ["study.storage=postgresql://me@db/x", "host.state_dir=/home/me/state"]
    made = as_worker(node, arguments(tmp_path, *words))
    host = config.load(made.overrides, None).spec.host
    assert (host.name, host.state_dir) == (node, f"/home/me/state/{node}")


@pytest.mark.compose
def test_without_submitit_one_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(
        ConfigError, match=r"hosts: slurm needs the package submitit: pip install 'specsweep\[slurm\]'"
    ):
        run_through_slurm(arguments(tmp_path, "study.storage=postgresql://me@db/x"))
