"""Random interleavings of launches, kills, Ctrl-C, a second process, a failing MLflow: nothing lost or doubled.

A database that loses what was written last is one more. `SPECSWEEP_STATEFUL=300x40` plays 300 nights of up to 40
events each, which takes an hour (`make interleavings`); by default it is 15 of 8.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from launchers.errors import HostBusy
from sweeper.errors import SweepInterrupted
from sweeper.records import TrialState
from sweeper.tracking.same_trial import TAG_SYNCED
from sweeper.tracking.view import TAG_TRIAL
from tests.stateful.fake_mlflow import DOWN, LOSING, UP
from tests.stateful.world import TRIALS, Killed, World, decisions, interrupt

pytestmark = [pytest.mark.study, pytest.mark.host]  # loading MLflow asks the system what it is

EXAMPLES, STEPS = map(int, os.environ.get("SPECSWEEP_STATEFUL", "15x8").split("x"))
MAX_DEATHS = 4
"""A fifth death during a trial puts it aside, and then another one is measured instead: told in the README."""


@functools.cache
def undisturbed() -> tuple[list[object], str]:
    """Decisions and verdict of a sweep in which nothing happens."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        verdict = world.process()
        return list(decisions(world)), verdict.text


class Nights(RuleBasedStateMachine):
    """One sweep, whatever happens to its processes."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.world = World(Path(self._folder.name))
        self.finished: dict[int, object] = {}
        self.kept: dict[str, object] | None = None

    @rule(launches=st.integers(1, 4))
    def run_a_while(self, launches: int) -> None:
        self.world.process(launches)
        assert self.world.host.servers == set()

    @precondition(lambda self: max(self.world.deaths.values(), default=0) < MAX_DEATHS)
    @rule(step=st.integers(1, 220))
    def kill(self, step: int) -> None:
        self.world.kill_at(step)
        assert len(self.world.host.servers) <= 1

    @rule()
    def press_ctrl_c_twice(self) -> None:
        self.world.during = [interrupt]
        with contextlib.suppress(SweepInterrupted):
            self.world.process(1)
        self.world.during = []
        assert self.world.host.servers == set()

    @rule()
    def start_a_second_process_meanwhile(self) -> None:
        refused: list[bool] = []

        def second() -> None:
            before = list(decisions(self.world))
            with pytest.raises(HostBusy):
                self.world.process()
            refused.append(decisions(self.world) == before and len(self.world.host.servers) == 1)

        self.world.during = [second]
        self.world.process(1)
        assert refused in ([True], []), "a finished sweep launches nothing"
        self.world.during = []

    @rule(how=st.sampled_from([UP, DOWN, LOSING]))
    def mlflow_changes(self, how: str) -> None:
        self.world.mlflow.behave = how

    @precondition(lambda self: self.finished)
    @rule()
    def the_standby_receives_all(self) -> None:
        self.kept = self.world.storage.content()

    @precondition(lambda self: self.kept is not None)
    @rule()
    def the_standby_takes_over(self) -> None:
        assert self.kept is not None
        self.world.storage.put_back(self.kept)
        self.world.deaths.clear()
        self.finished.clear()

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        trials = self.world.study().trials()
        finished = {t.number: (t.key, t.state) for t in trials if t.state is not TrialState.RUNNING}
        assert self.finished.items() <= finished.items(), "a finished trial is lost or has changed"
        self.finished = dict(finished)
        keys = [trial.key for trial in trials if trial.key]
        assert len(set(keys)) == len(keys), "a configuration was tried twice"
        for trial in trials:
            numbers = [launch.launch_number for launch in trial.launches]
            assert numbers == list(range(len(numbers))), "a launch is lost or doubled"
        assert len(finished) <= TRIALS, "the budget was overshot"
        shown = [run.tags[TAG_TRIAL] for run in self.world.mlflow.shown if TAG_SYNCED in run.tags]
        assert len(set(shown)) == len(shown), "a trial has two complete runs"

    def teardown(self) -> None:
        try:
            self.world.mlflow.behave = UP
            verdict = self.world.process()
            self.nothing_is_lost_or_doubled()
            assert self.world.host.servers == set()
            expected, text = undisturbed()
            assert list(decisions(self.world)) == expected
            assert verdict.text == text
            shown = self.world.mlflow.shown
            numbers = sorted(int(run.tags[TAG_TRIAL]) for run in shown)
            assert numbers == sorted(self.finished), "MLflow shows what the study has, once"
            assert all(TAG_SYNCED in run.tags and run.files for run in shown)
        finally:
            self._folder.cleanup()


TestNights = Nights.TestCase
TestNights.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_kill_at_each_of_its_steps_changes_no_decision(tmp_path: Path) -> None:
    expected, text = undisturbed()
    step = 0
    while True:
        step += 13
        folder = tmp_path / str(step)
        folder.mkdir()
        world = World(folder)
        world.fuse.left = step
        try:
            world.process()
            break  # it ended before the kill
        except Killed:
            world.fuse.left = None
        verdict = world.process()
        assert (list(decisions(world)), verdict.text) == (expected, text), step
        assert len(world.mlflow.active) == len(expected)
    assert step > 100
