"""The primary of a real PostgreSQL is killed in mid-sweep, and its standby takes over."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sweeper.tracking.view import TAG_KEY, TAG_LOST, TAG_STATE, TAG_TRIAL
from tests.fleet.crew import Fleet, Running, figures
from tests.fleet.postgres import programs
from tests.fleet.standby import Pair, pair
from tests.fleet.worker import OBJECTIVE
from tests.tracking import seen

pytestmark = [pytest.mark.host, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

TRIALS = 14


@pytest.fixture
def servers() -> Iterator[Pair]:
    """A primary and a standby that streams from it."""
    if programs() is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    with pair() as made:
        yield made


@pytest.fixture
def fleet(servers: Pair, tmp_path: Path) -> Iterator[Fleet]:
    """Workers that know both servers; none of them is left."""
    made = Fleet(servers.create("sweeps"), tmp_path, trials=TRIALS, tracking=f"sqlite:///{tmp_path}/mlflow.db")
    yield made
    made.end_all()


def at_work(fleet: Fleet) -> list[Running]:
    """Two workers with most of the sweep before them: one in a long launch, one that has just told another."""
    slow = fleet.start("a", launch_s=1.5)
    slow.wait_for("launch 0 0 baseline")
    quick = fleet.start("b")
    quick.wait_for("told")
    return [slow, quick]


def fail_over(servers: Pair, crew: Sequence[Running]) -> None:
    """The primary is killed while the workers are held; the standby is promoted once both have missed it."""
    for running in crew:
        running.kill(signal.SIGSTOP)
    servers.primary.kill()
    for running in crew:
        running.kill(signal.SIGCONT)
    for running in crew:
        running.wait_for("note: the study's database: .*; tried again for")
    servers.promote()
    assert [running.end() for running in crew] == [0, 0], "\n".join(running.output for running in crew)


def told(crew: Sequence[Running]) -> dict[tuple[int, int], float]:
    """Trial and launch to value, of all that the workers had written."""
    lines = [line.split() for running in crew for line in running.lines if line.startswith("told ")]
    return {(int(trial), int(number)): float(value) for _, trial, number, value in lines}


def kept(fleet: Fleet) -> dict[tuple[int, int], float]:
    """The same, as it is in the study."""
    return {(t.number, n.launch_number): n.metrics[OBJECTIVE] for t in fleet.records() for n in t.launches}


def require_whole(fleet: Fleet, crew: Sequence[Running]) -> None:
    seen = figures(fleet)
    assert seen.states == {"complete": TRIALS}
    assert (seen.duplicates, seen.twice_measured, seen.left_behind) == (0, 0, 0), seen.line()
    assert all("launches left: 0" in running.lines for running in crew)
    verdicts = {line for running in crew for line in running.lines if line.startswith("verdict:")}
    assert len(verdicts) == 1, "all have the same trials before them"


def test_a_standby_that_has_all_takes_over_and_nothing_is_lost_or_doubled(servers: Pair, fleet: Fleet) -> None:
    servers.acknowledge()
    crew = at_work(fleet)
    fail_over(servers, crew)
    require_whole(fleet, crew)
    assert told(crew).items() <= kept(fleet).items()
    assert all("is back after" in running.output for running in crew)


def test_what_a_standby_had_not_received_is_measured_again(servers: Pair, fleet: Fleet) -> None:
    crew = at_work(fleet)
    servers.part()
    for _ in range(3):
        crew[1].wait_for("told")
    fail_over(servers, crew)
    require_whole(fleet, crew)
    assert not told(crew).items() <= kept(fleet).items(), "something was lost"


def differences(fleet: Fleet) -> list[str]:
    """Where runs that name a trial are not the study's trials: one each, with its configuration and repeats."""
    client, found = seen.client(fleet.tracking), []
    shown = [run for run in seen.all_runs(fleet.tracking) if TAG_TRIAL in run.data.tags]
    numbers = Counter(int(run.data.tags[TAG_TRIAL]) for run in shown)
    trials = {trial.number: trial for trial in fleet.records()}
    found += [f"{numbers[number]} runs for trial {number}" for number in trials if numbers[number] != 1]
    found += [f"a run for trial {number}, which is none" for number in numbers.keys() - trials.keys()]
    for run in shown:
        if (trial := trials.get(int(run.data.tags[TAG_TRIAL]))) is None:
            continue
        asked = {name: str(value) for name, value in trial.canonical.flags.items()}
        if (run.data.tags[TAG_KEY], run.data.params) != (trial.key, asked):
            found.append(f"trial {trial.number}: {run.data.params} in MLflow, {asked} in the study")
        repeats = [round(value, 2) for launch in trial.measured for value in launch.repeat_throughputs]
        points = [value for _, _, value in sorted(seen.history(client, run, "repeat_output_throughput"))]
        if points != repeats:
            found.append(f"trial {trial.number}: repeats {points} in MLflow, {repeats} in the study")
    return found


def test_mlflow_is_the_study_after_a_loss_and_says_which_runs_are_of_none(servers: Pair, fleet: Fleet) -> None:
    crew = at_work(fleet)
    servers.part()
    for _ in range(3):
        crew[1].wait_for("told")
    for line in ("told", "launch"):  # who keeps MLflow for both has shown these
        crew[0].wait_for(line)
    before = seen.all_runs(fleet.tracking)
    fail_over(servers, crew)
    require_whole(fleet, crew)
    assert differences(fleet) == []
    after = {run.info.run_id: run for run in seen.all_runs(fleet.tracking)}
    assert after.keys() >= {run.info.run_id for run in before}, "no run is deleted"
    lost = [run for run in after.values() if TAG_LOST in run.data.tags]
    assert lost
    for run in lost:
        assert (run.info.status, run.data.tags[TAG_STATE]) == ("KILLED", "lost")
        assert run.info.run_name.startswith(f"lost: trial {run.data.tags[TAG_LOST]}")
        was = next(old for old in before if old.info.run_id == run.info.run_id)
        assert (run.data.params, run.data.metrics) == (was.data.params, was.data.metrics), "nothing is mixed up"
