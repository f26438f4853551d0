"""Workers as processes of their own, on a real PostgreSQL: killed, suspended, cut off."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweeper.records import Purpose, TrialState
from tests.fleet.crew import Fleet, campaign, figures
from tests.fleet.postgres import Cluster

pytestmark = pytest.mark.host

FleetOf = Callable[..., Fleet]


@pytest.fixture
def fleet_of(database: str, tmp_path: Path) -> Iterator[FleetOf]:
    """Makes the workers on one database; none of them is left."""
    made: list[Fleet] = []

    def make(**settings: float) -> Fleet:
        made.append(Fleet(database, tmp_path, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for fleet in made:
        fleet.end_all()


def test_a_dead_worker_s_trial_is_taken_over_once_and_keeps_its_number(fleet_of: FleetOf) -> None:
    fleet = fleet_of(trials=5)
    dying = fleet.start("a", launch_s=8)
    dying.wait_for("launch 1 0 search")  # not the baseline: each host measures its own, whoever has that trial
    dying.kill()
    dying.end()
    heirs = [fleet.start("b"), fleet.start("c")]
    assert [heir.end() for heir in heirs] == [0, 0]
    said = "\n".join(heir.output for heir in heirs)
    assert len(re.findall(r"note: trial 1 is taken over from host a: its worker's lease is over", said)) == 1
    seen = figures(fleet)
    assert seen.states == {"complete": 5}
    assert (seen.duplicates, seen.twice_measured, seen.left_behind) == (0, 0, 0)


@pytest.mark.slow
def test_an_early_restart_on_the_same_host_need_not_wait_for_the_lease(fleet_of: FleetOf) -> None:
    fleet = fleet_of(trials=3, lease_s=3000)
    dying = fleet.start("a", launch_s=60)
    dying.wait_for("launch 0 0 baseline")
    dying.kill()
    dying.end()
    again = fleet.start("a")
    assert again.end() == 0, again.output
    assert figures(fleet).states == {"complete": 3}


def test_a_worker_that_was_suspended_beyond_its_lease_gives_its_trial_up(fleet_of: FleetOf) -> None:
    fleet = fleet_of(trials=6)
    sleeper = fleet.start("a", launch_s=4)
    _, number, launch, _ = sleeper.wait_for(r"launch \d+ \d+ search").split()
    sleeper.kill(signal.SIGSTOP)
    other = fleet.start("b")
    other.wait_for(f"note: trial {number} is taken over from host a")
    sleeper.kill(signal.SIGCONT)
    sleeper.wait_for(f"note: trial {number}: launch {launch} was taken over by another worker")
    assert (sleeper.end(), other.end()) == (0, 0)
    seen = figures(fleet)
    assert seen.states == {"complete": 6}
    assert (seen.duplicates, seen.twice_measured, seen.left_behind) == (0, 0, 0)


@pytest.mark.slow
def test_a_server_that_restarts_in_mid_sweep_loses_and_doubles_nothing(
    postgres: Cluster, fleet_of: FleetOf
) -> None:
    fleet = fleet_of(trials=12)
    crew = [fleet.start("a"), fleet.start("b")]
    crew[1].wait_for("launch")  # who is still on its way to a server that is gone takes the address for wrong
    for mode in ("fast", "immediate"):
        crew[0].wait_for("launch")
        postgres.stop(mode)
        crew[0].wait_for(".*tried again for")  # one that is back before the next statement was never missed
        postgres.start()
        crew[0].wait_for("launch|note: .*(is back after|was taken over)")
    assert [running.end() for running in crew] == [0, 0], crew[0].output + crew[1].output
    assert any("is back after" in running.output for running in crew)
    seen = figures(fleet)
    assert seen.states == {"complete": 12}
    assert (seen.duplicates, seen.twice_measured, seen.left_behind) == (0, 0, 0)


def test_every_host_measures_its_own_baseline_and_one_confirms(fleet_of: FleetOf) -> None:
    fleet = fleet_of(trials=8, confirm_launches=2, launch_s=0.05)
    crew = [fleet.start("a"), fleet.start("b")]
    assert [running.end() for running in crew] == [0, 0], crew[0].output + crew[1].output
    baseline, *others = fleet.records()
    assert {n.host for n in baseline.launches if n.purpose is Purpose.BASELINE} == {"a", "b"}
    confirming = [n for trial in (baseline, *others) for n in trial.launches if n.purpose is Purpose.CONFIRM]
    assert len({launch.host for launch in confirming}) == 1
    assert all("launches left: 0\n" in running.output for running in crew), crew[0].output + crew[1].output
    verdicts = {line for running in crew for line in running.lines if line.startswith("verdict:")}
    assert len(verdicts) == 1, "both say the same"
    assert "All values are on the scale of host" in verdicts.pop()


@pytest.mark.slow
def test_ctrl_c_ends_one_worker_and_the_others_do_the_rest(fleet_of: FleetOf) -> None:
    fleet = fleet_of(trials=6, lease_s=3000)
    leaver, other = fleet.start("a", launch_s=60), fleet.start("b")
    leaver.wait_for("launch")
    leaver.kill(signal.SIGTERM)
    assert leaver.end() != 0
    assert other.end() == 0, other.output
    assert all(trial.state is TrialState.COMPLETE for trial in fleet.records())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sixty_trials_through_six_kills_of_three_workers_are_exactly_sixty(fleet_of: FleetOf) -> None:
    seen = campaign(fleet_of(trials=60), "abc", kills=6, seed=6)
    assert seen.states == {"complete": 60}, seen.line()
    assert (seen.duplicates, seen.twice_measured, seen.left_behind) == (0, 0, 0), seen.line()
