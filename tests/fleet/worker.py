"""A worker as a process of its own: the real loop on a real shared study; only the launch is a stand-in.

`python -m tests.fleet.worker URL FOLDER HOST TRIALS LEASE_S LAUNCH_S [CONFIRM_LAUNCHES [TRACKING_URI]]`
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sweeper.deciding.sharing import Ranking
from sweeper.engines.base import HostFacts
from sweeper.engines.registry import engine_for
from sweeper.host_spec import HostSpec
from sweeper.interrupts import Interrupts
from sweeper.launch_record import Save
from sweeper.loop import run_sweep
from sweeper.records import LaunchRecord, Proposal
from sweeper.rig import Rig
from sweeper.samplers.choice import SamplerSettings
from sweeper.searching.candidates import Candidates
from sweeper.spec import BudgetSpec, Choice, Parameter, ServerConfig, SpaceSpec
from sweeper.storing.leases import Worker
from sweeper.storing.ownership import at_work
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_place import Place
from sweeper.study import Study
from sweeper.tracking import Tracker
from tests.core.specs import sweep_spec
from tests.core.test_loop import IdleLauncher
from tests.fakes import RecordingView, launch, load_of

OBJECTIVE = "output_throughput"
SPACE = SpaceSpec(
    parameters=(
        Parameter(name="m", domain=Choice(values=tuple(range(10)))),
        Parameter(name="n", domain=Choice(values=tuple(range(10)))),
    )
)
SPEEDS = {"a": 1.0, "b": 0.8, "c": 1.25}
"""How fast each host is."""


class PrintingView(RecordingView):
    """One line per event, for whoever reads the process's output."""

    def launch_started(self, proposal: Proposal, progress: object) -> None:
        print(f"launch {proposal.trial_number} {proposal.launch_number} {proposal.purpose}", flush=True)

    def launch_ended(self, record: LaunchRecord, progress: object) -> None:
        value = record.metrics[OBJECTIVE]
        print(f"told {record.trial_number} {record.launch_number} {value!r}", flush=True)

    def notice(self, text: str) -> None:
        print(f"note: {text}", flush=True)


def open_study(url: str, folder: Path, sampler: str = "tpe", reconnect_s: float = 30.0) -> Study:
    store = StudyStore.open(url, "night", Place(str(folder), reconnect_s=reconnect_s), create=True)
    candidates = Candidates(SPACE, ServerConfig(), lambda config: config, lambda config: [])
    settings = SamplerSettings(sampler, 0, startup_trials=8)
    return Study(store, candidates, ServerConfig(), settings, Ranking(OBJECTIVE))


def speed(config: ServerConfig, host: str) -> float:
    m, n = (float(config.flags.get(name, 0)) for name in ("m", "n"))
    return SPEEDS[host] * (50 + m - (n - 4) ** 2 / 4)


def record_of(proposal: Proposal, host: str, rig: Rig) -> LaunchRecord:
    value = speed(proposal.canonical, host) * (1 + random.gauss(0, 0.002))
    made = launch(value, trial=proposal.trial_number, number=proposal.launch_number, purpose=proposal.purpose)
    now = rig.clock.now()
    update = {"requested": proposal.requested, "canonical": proposal.canonical, "host": host}
    return made.model_copy(update={**update, "started_at": now, "ended_at": now, "provenance": {"host": host}})


def measuring(host: str, launch_s: float) -> Callable[[Proposal, Rig, Save], LaunchRecord]:
    def measured(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
        began = time.monotonic()
        record = record_of(proposal, host, rig)
        while time.monotonic() - began < launch_s:
            time.sleep(0.01)
        save(record, {"server.log": b"log"})
        return save(record, {"server.log": b"whole log"})

    return measured


def main() -> None:
    url, folder, host, trials, lease_s, launch_s, *more = sys.argv[1:]
    view = PrintingView()
    interrupts = Interrupts(view.notice)
    spec = sweep_spec("llamacpp", SPACE, {}, "tpe")
    confirm, uri = int(more[0]) if more else 0, more[1] if len(more) > 1 else ""
    spec = spec.model_copy(
        update={
            "budget": BudgetSpec(trials=int(trials), finalists=1, confirm_launches=confirm, baseline_every=20),
            "study": spec.study.model_copy(update={"lease_s": float(lease_s), "dir": folder}),
            "tracking": spec.tracking.model_copy(update={"uri": uri, "artifact_location": f"{folder}/files"}),
            "host": HostSpec(name=host, state_dir="/state", port_low=18200, port_high=18201),
        }
    )
    with interrupts.installed():
        study = open_study(url, Path(folder))
        study.store.database.say = view.notice
        study.require_same({"host.name": host, "space": "s"})
        with at_work(study.store, Worker.new(host), float(lease_s)) as (study.ownership, clock):
            rig = Rig(
                spec, engine_for("llamacpp"), IdleLauncher(), clock, HostFacts(), view, interrupts,
                (load_of(spec.workload),),
            )  # fmt: skip
            verdict = run_sweep(
                replace(rig), study, Tracker(spec.tracking, clock), measuring(host, float(launch_s))
            )
            print(f"launches left: {study.progress(spec.budget).launches_left}", flush=True)
    print(f"verdict: {verdict.text}", flush=True)


if __name__ == "__main__":
    main()
