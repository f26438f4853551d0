"""A new study learns from an earlier one that several hosts have shared: on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from sweeper.errors import ConfigError
from sweeper.records import LaunchRecord, Proposal
from sweeper.samplers.physics import Observation
from sweeper.searching.warm_start import earlier_observations
from sweeper.spec import BudgetSpec, StudySpec
from sweeper.storing.leases import Worker
from sweeper.storing.ownership import at_work
from tests.core.drafting import measured, open_study, physics_of, shown

pytestmark = pytest.mark.service

OBJECTIVE = "output_throughput"
SPEEDS = {"a": 1.0, "b": 0.5}
SHARED = {"engine.name": "sglang", "engine.version": "0.5.23", "model.content": "aa", "objective": OBJECTIVE}


def on(host: str, driver: str = "1") -> dict[str, str]:
    """The fingerprint of a sweep on a host."""
    return {**SHARED, "host.name": host, "host.driver": driver}


def measured_on_host(proposal: Proposal, host: str) -> LaunchRecord:
    made = measured(proposal)
    metrics = {**made.metrics, OBJECTIVE: made.metrics[OBJECTIVE] * SPEEDS[host]}
    return made.model_copy(update={"host": host, "metrics": metrics, "provenance": {"host": host}})


@pytest.fixture
def night(database: str, tmp_path: Path) -> str:
    """The address of a study, `old`, of six trials on two hosts, one of which is half as fast."""
    studies = {host: open_study(tmp_path, name="old", sampler="random", url=database) for host in SPEEDS}
    budget = BudgetSpec(trials=6, finalists=1, confirm_launches=0, baseline_every=99)
    with ExitStack() as stack:
        for host, study in studies.items():
            study.require_same(on(host))
            study.ownership, _ = stack.enter_context(at_work(study.store, Worker.new(host), 60))
        working = dict(studies)
        while working:
            for host, study in list(working.items()):
                if (proposal := study.ask(budget)) is None:
                    del working[host]
                    continue
                study.tell(proposal, study.save(measured_on_host(proposal, host), {}))
    return database


def learned(night: str, folder: Path, host: str, driver: str = "1") -> tuple[Sequence[Observation], list[str]]:
    """What a new study on a host hears of the old one."""
    spec = StudySpec(name="new", dir=str(folder), storage=night, seed=0, startup_trials=1, warm_start=("old",))
    return earlier_observations(spec, physics_of(), on(host, driver), OBJECTIVE)


def test_each_host_hears_the_same_and_on_one_scale(night: str, tmp_path: Path) -> None:
    told, notes = learned(night, tmp_path, "a")
    assert notes == ["warm start: 6 configurations that old has tried"]
    assert learned(night, tmp_path, "b")[0] == told
    trials = open_study(tmp_path, name="old", url=night).trials()
    assert {launch.host for trial in trials for launch in trial.launches} == {"a", "b"}
    alone = [shown(trial.canonical)[OBJECTIVE] for trial in trials]
    assert [seen.throughput for seen in told] == pytest.approx(alone)


def test_a_host_that_had_no_part_in_it_is_refused_by_name(night: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'old' cannot be used: host\.name was a, b there and is c here"):
        learned(night, tmp_path, "c")


def test_a_host_whose_driver_is_another_one_since_is_refused(night: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"host\.driver was 1 there and is 2 here"):
        learned(night, tmp_path, "b", driver="2")
