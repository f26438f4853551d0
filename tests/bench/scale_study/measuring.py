"""What one process needs on a large study: the steps of `specsweep run` around its launches, without a server."""

from __future__ import annotations

import random
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from launchers.clock import SystemClock
from sweeper.deciding.affordable import afford
from sweeper.deciding.plan import start_limit_s
from sweeper.nights.purses import Purses
from sweeper.records import LaunchRecord, Proposal
from sweeper.spec import SweepSpec
from sweeper.study import Study
from sweeper.tracking import Tracker
from tests.bench.scale_study.builder import load, opened
from tests.bench.scale_study.records import HOST, failure_of, record

STARTED = time.perf_counter()


@dataclass(frozen=True)
class Needed:
    """`start_s`: from the first import to the first proposal. `own_s`: of each trial. `peak_mib`: resident.

    `cpu`: the same in the processor's time, which other processes do not lengthen.
    """

    start_s: float
    start_cpu_s: float
    own_s: list[float]
    own_cpu_s: list[float]
    peak_mib: float


def run_some(directory: Path, sampler: str, num_trials: int, count: int, storage: str = "") -> Needed:
    """Go on with a finished study for `count` launches, as the loop does."""
    loaded = load(directory, num_trials, sampler, storage)
    spec = loaded.spec
    study = opened(loaded)
    study.progress(spec.budget)
    tracker = Tracker(spec.tracking, SystemClock())
    study.reconcile()
    study.progress(spec.budget)
    tracker.sync(study)
    start_limit_s(study.trials(), spec.limits.start_s)
    purses = Purses(spec, HOST)
    proposal = _asked(study, purses, spec)
    start_s, start_cpu_s = time.perf_counter() - STARTED, time.process_time()
    own: list[float] = []
    own_cpu: list[float] = []
    for nth in range(count):
        assert proposal is not None
        began, began_cpu = time.perf_counter(), time.process_time()
        study.progress(spec.budget)
        made = study.save(_measured(proposal, num_trials * 2 + nth), {})
        study.save(made, {})
        study.tell(proposal, made)
        study.search_is_over(spec.budget)
        start_limit_s(study.trials(), spec.limits.start_s)
        study.progress(spec.budget)
        tracker.sync(study)
        proposal = _asked(study, purses, spec)
        own.append(time.perf_counter() - began)
        own_cpu.append(time.process_time() - began_cpu)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Needed(start_s, start_cpu_s, own, own_cpu, peak)


def _asked(study: Study, purses: Purses, spec: SweepSpec) -> Proposal | None:
    """The next proposal, chosen as in a night that ends (night.py)."""
    trials = study.trials()
    decision = afford(study.next_step, spec.budget, trials, purses.of(trials, None, None), frozenset())
    assert decision.budget is not None
    purses.time_left_s(study.trials(), None, None)
    proposal = study.ask(decision.budget)
    purses.time_left_s(study.trials(), None, None)
    return proposal


def _measured(proposal: Proposal, nth: int) -> LaunchRecord:
    place = (proposal.trial_number, proposal.launch_number, proposal.purpose)
    failure = failure_of(proposal.trial_number) if proposal.trial_number else None
    return record(proposal.canonical, place, nth, random.Random(nth), failure)
