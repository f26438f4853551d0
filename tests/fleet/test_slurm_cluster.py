"""`specsweep run hosts=slurm` on a real Slurm of two nodes; only the inference server is a stand-in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import make_url

from sweeper.records import TrialRecord, TrialState
from sweeper.storing.kept_run import kept_runs
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_place import Place
from tests.chaos.audit import doubled, processes_of
from tests.chaos.sweeps import LLAMA, SHORT, STUDY
from tests.fleet.crew import Running
from tests.fleet.postgres import PASSWORD
from tests.fleet.slurm_cluster import NODES, Slurm, missing, slurm

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
NODE = """\
defaults: [local]
state_dir: {folder}/state
port_low: ${{oc.decode:{port}${{oc.env:SLURM_ARRAY_TASK_ID,0}}}}
port_high: ${{host.port_low}}
"""
"""Both nodes are this machine, so each needs a port of its own."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Slurm]:
    pytest.importorskip("submitit")
    if why := missing():
        pytest.skip(why)
    with slurm() as made:
        yield made


@dataclass(frozen=True)
class Fleet:
    """One command, and what it leaves in the study."""

    cluster: Slurm
    url: str
    folder: Path

    def start(self, *words: str) -> Running:
        url = make_url(self.url)
        common = [
            "--config-dir", str(self.folder / "my"), *SHORT, "host=node",
            f"engine.command=[{sys.executable},-S,-E,{LLAMA},{self.folder}]",
            f"model.path={self.folder}/model.gguf", f"study.dir={self.folder}", "tracking.uri=''",
            f'study.storage="{url._replace(password=None).render_as_string()}"', "study.lease_s=5",
            "budget.trials=5", "budget.confirm_launches=0", "budget.baseline_every=100", "hosts=slurm",
        ]  # fmt: skip
        env = {**self.cluster.env, "PGPASSWORD": PASSWORD, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        made = subprocess.Popen(
            [sys.executable, "-m", "sweeper", "run", *common, *words], cwd=self.folder, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        return Running("slurm", made)

    def slow_launches(self) -> None:
        (self.folder / "fault").write_text("slow 0.5 100")

    def quick_launches(self) -> None:
        (self.folder / "fault").unlink()

    def store(self) -> StudyStore:
        return StudyStore.open(self.url, STUDY, Place(str(self.folder)), create=False)

    def trials(self) -> tuple[TrialRecord, ...]:
        return self.store().trials()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """While open, no further job gets a node."""
        for state in ("drain", "resume"):
            self.cluster.ask("scontrol", "update", "nodename=ALL", f"state={state}", "reason=test")
            if state == "drain":
                yield

    def is_over(self) -> bool:
        """Whether no job is left, and no server or worker of one."""
        return not self.cluster.ask("squeue", "--noheader") and not processes_of(self.folder)


@pytest.fixture
def fleet(cluster: Slurm, database: str, tmp_path: Path) -> Iterator[Fleet]:
    (tmp_path / "my" / "host").mkdir(parents=True)
    port = 2500 + os.getpid() % 500
    (tmp_path / "my" / "host" / "node.yaml").write_text(NODE.format(folder=tmp_path, port=port))
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    yield Fleet(cluster, database, tmp_path)
    cluster.ask("scancel", "--user=root")


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.2)


def test_each_node_gets_a_worker_and_a_third_job_is_cancelled_when_the_sweep_is_complete(fleet: Fleet) -> None:
    running = fleet.start("slurm.nodes=3", "slurm.time=10", "slurm.comment=a night")
    for _ in NODES:
        running.wait_for(r"slurm \| job \S+ runs on")
    with fleet.closed():
        assert running.end() == 0, running.output
    trials = fleet.trials()
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 5
    assert doubled(trials) == []
    assert {launch.host for launch in trials[0].launches} == set(NODES)
    assert {line.partition(" | ")[0] for line in running.lines} >= {"slurm", *NODES}
    assert "ended by Slurm: cancelled" in running.output
    assert fleet.is_over()
    kept = [path.read_bytes() for path in fleet.folder.rglob("*") if path.is_file()]
    assert not any(PASSWORD.encode() in content for content in kept)
    assert all("hosts=slurm" in run.overrides for run in kept_runs(fleet.store())), "what resume gives again"


def test_a_cancelled_fleet_gives_its_trials_back_and_leaves_no_server(fleet: Fleet) -> None:
    fleet.slow_launches()
    running = fleet.start("slurm.nodes=2")
    for name in NODES:
        running.wait_for(rf"{name} \| .*trial \d+: ")
    running.kill(signal.SIGTERM)
    assert running.end() == 143, running.output
    assert running.output.count("ended with exit code 143") == 2, running.output
    until(fleet.is_over, "the end of all jobs")
    assert all(not trial.launches or trial.state is TrialState.COMPLETE for trial in fleet.trials())


def test_a_job_that_slurm_takes_its_node_from_joins_again_and_one_ctrl_c_lets_it_finish(fleet: Fleet) -> None:
    fleet.slow_launches()
    running = fleet.start("slurm.nodes=1", "budget.trials=30")
    running.wait_for(r"n\d \| .*trial 0: baseline")
    job = fleet.cluster.ask("squeue", "--noheader", "--format=%i")
    fleet.cluster.ask("scontrol", "requeue", job)
    running.wait_for(rf"slurm \| job {job} is to run again")
    fleet.quick_launches()
    running.wait_for(r"n\d \| .*trial 1: ")
    running.kill(signal.SIGINT)
    assert running.end() == 130, running.output
    states = {trial.state for trial in fleet.trials()}
    assert states == {TrialState.COMPLETE}
    assert 2 <= len(fleet.trials()) < 30
    assert doubled(fleet.trials()) == []


def test_an_option_that_slurm_refuses_is_one_message(fleet: Fleet) -> None:
    running = fleet.start("slurm.nodes=1", "slurm.partition=nowhere")
    assert running.end() == 5
    assert "Slurm did not take the jobs" in running.lines[-2] + running.lines[-1]
    assert "invalid partition specified: nowhere" in running.output
    assert fleet.is_over()
