"""A host, a storage and an MLflow that outlive the processes of a sweep, and a kill at any of their steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import optuna
from optuna.storages import InMemoryStorage

from launchers.errors import HostBusy
from sweeper.deciding.sharing import Ranking
from sweeper.deciding.verdict import Verdict
from sweeper.errors import ExitCode, FailureKind, SweepInterrupted
from sweeper.launch_record import Save
from sweeper.loop import run_sweep
from sweeper.records import LaunchRecord, Proposal
from sweeper.rig import Rig
from sweeper.samplers.choice import SamplerSettings
from sweeper.searching.candidates import Candidates
from sweeper.spec import ServerConfig, TrackingSpec
from sweeper.storing.storage import StudyStore
from sweeper.study import Study
from sweeper.tracking import Tracker
from tests.core.test_loop import IdleLauncher, make_rig
from tests.core.test_study import OBJECTIVE, SPACE, record_of, refuse, rewrite, speed
from tests.fakes import RecordingView
from tests.stateful.fake_mlflow import FakeMlflow

TRIALS = 6
BASE = ServerConfig(flags={"ctx": 512})
Made = TypeVar("Made")


class Killed(BaseException):
    """The process was killed: nothing of it runs on."""


@dataclass
class Fuse:
    """Burns down with every step that changes anything outside the process; at zero the process is killed."""

    left: int | None = None

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                raise Killed


class KillableStorage(InMemoryStorage):
    """Optuna's storage; every write is a step before and after it."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self._fuse = fuse

    def content(self) -> dict[str, object]:
        """All that is stored now, as a standby has received it."""
        return {name: copy.deepcopy(kept) for name, kept in vars(self).items() if name not in ("_fuse", "_lock")}

    def put_back(self, content: Mapping[str, object]) -> None:
        """From now on only that is stored."""
        vars(self).update(copy.deepcopy(dict(content)))

    def _step(self, write: Callable[[], Made]) -> Made:
        self._fuse.step()
        made = write()
        self._fuse.step()
        return made

    def create_new_trial(self, *args: Any, **kwargs: Any) -> int:
        return self._step(lambda: super(KillableStorage, self).create_new_trial(*args, **kwargs))

    def set_trial_param(self, *args: Any) -> None:
        self._step(lambda: super(KillableStorage, self).set_trial_param(*args))

    def set_trial_state_values(self, *args: Any, **kwargs: Any) -> bool:
        return self._step(lambda: super(KillableStorage, self).set_trial_state_values(*args, **kwargs))

    def set_trial_user_attr(self, *args: Any) -> None:
        self._step(lambda: super(KillableStorage, self).set_trial_user_attr(*args))

    def set_trial_system_attr(self, *args: Any) -> None:
        self._step(lambda: super(KillableStorage, self).set_trial_system_attr(*args))

    def set_study_user_attr(self, *args: Any) -> None:
        self._step(lambda: super(KillableStorage, self).set_study_user_attr(*args))


class HostOfServers(IdleLauncher):
    """A host with a lock and the servers that run on it, whoever started them."""

    def __init__(self, fuse: Fuse) -> None:
        self.servers: set[str] = set()
        self.is_held = False
        self._fuse = fuse

    @contextmanager
    def held(self) -> Iterator[None]:
        """The lock, which the kernel frees when its process ends. Raises HostBusy."""
        if self.is_held:
            raise HostBusy("here is held by another specsweep", "pid 1")
        self.is_held = True
        try:
            yield
        finally:
            self.is_held = False

    def begin(self, name: str) -> None:
        assert not self.servers, "two servers at once"
        self._fuse.step()
        self.servers.add(name)
        self._fuse.step()

    def end(self, name: str) -> None:
        self._fuse.step()
        self.servers.discard(name)
        self._fuse.step()

    def stop_leftovers(self, grace_s: float) -> tuple[str, ...]:
        del grace_s
        stopped = tuple(self.servers)
        for name in stopped:
            self.end(name)
        return stopped


@dataclass
class World:
    """Everything but the process. `folder` holds the artifacts. `during`: what happens in the next launches."""

    folder: Path
    fuse: Fuse = field(default_factory=Fuse)
    during: list[Callable[[], None]] = field(default_factory=list)
    deaths: dict[int, int] = field(default_factory=dict)
    measured: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.storage = KillableStorage(self.fuse)
        self.host = HostOfServers(self.fuse)
        self.mlflow = FakeMlflow(self.fuse.step)

    def study(self) -> Study:
        """The study as a new process opens it."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        plain = optuna.samplers.RandomSampler()
        made = optuna.create_study(
            study_name="night", storage=self.storage, sampler=plain, direction="maximize", load_if_exists=True
        )
        candidates = Candidates(SPACE, BASE, rewrite, refuse)
        settings = SamplerSettings("random", 0, startup_trials=3)
        return Study(StudyStore(made, self.folder), candidates, BASE, settings, Ranking(OBJECTIVE))

    def process(self, max_launches: int = 1000) -> Verdict:
        """One process from its start to its end. Raises Killed, HostBusy, SweepInterrupted."""
        with self.host.held():
            study = self.study()
            rig = replace(make_rig(self.folder, RecordingView(), TRIALS), launcher=self.host)
            tracker = Tracker(TrackingSpec(uri="http://mlflow", artifact_location="", sync_s=60.0), rig.clock)
            tracker._client = self.mlflow  # type: ignore[assignment]
            return run_sweep(rig, study, tracker, self._launcher(max_launches))

    def kill_at(self, step: int) -> None:
        """One process, killed at its `step`th step, if it comes that far."""
        self.fuse.left = step
        try:
            self.process()
        except Killed:
            self.fuse.left = None
            for trial in self.study().trials():
                if trial.state.value == "running":
                    self.deaths[trial.number] = self.deaths.get(trial.number, 0) + 1
        finally:
            self.fuse.left = None

    def _launcher(self, max_launches: int) -> Callable[[Proposal, Rig, Save], LaunchRecord]:
        made = 0

        def launch(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
            nonlocal made
            made += 1
            if made >= max_launches:
                rig.interrupts.finish_requested = True
            name = f"{proposal.trial_number}-{proposal.launch_number}"
            self.host.begin(name)
            try:
                while self.during:
                    self.during.pop()()
            except SweepInterrupted:
                self.host.end(name)
                raise
            record = save(outcome(proposal), {"server.log": name.encode()})
            self.host.end(name)
            return save(record, {"server.log": name.encode()})

        return launch


def outcome(proposal: Proposal) -> LaunchRecord:
    """What a launch of this configuration always comes to: one of them is out of memory."""
    if proposal.canonical.flags.get("m") == 3:
        return record_of(proposal, None, FailureKind.OUT_OF_MEMORY)
    return record_of(proposal, speed(proposal.canonical))


def interrupt() -> None:
    """Ctrl-C, twice."""
    raise SweepInterrupted(ExitCode.INTERRUPTED)


def decisions(world: World) -> list[Mapping[str, object]]:
    """What was tried, in which order, and what each launch came to."""
    return [
        {
            "number": trial.number,
            "key": trial.key,
            "state": trial.state,
            "launches": [(n.purpose, n.metrics.get(OBJECTIVE)) for n in trial.launches],
        }
        for trial in world.study().trials()
    ]
