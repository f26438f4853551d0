"""What one process needs on a large study: the steps of `specsweep run` around its launches, without a server."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from pathlib import Path

from launchers.clock import SystemClock
from sweeper.deciding.plan import start_limit_s
from sweeper.records import LaunchRecord, Proposal
from sweeper.tracking import Tracker
from tests.bench.scale_study.builder import load, opened
from tests.bench.scale_study.records import failure_of, record

STARTED = time.perf_counter()


@dataclass(frozen=True)
class Needed:
    """`start_s`: from the first import to the first proposal. `own_s`: of each trial. `peak_mib`: resident."""

    start_s: float
    own_s: list[float]
    peak_mib: float
    sync_s: list[float]


def run_some(directory: Path, sampler: str, num_trials: int, count: int, storage: str = "") -> Needed:
    """Go on with a finished study for `count` launches, as the loop does."""
    loaded = load(directory, num_trials, sampler, storage)
    spec = loaded.spec
    study = opened(loaded)
    study.progress(spec.budget)
    tracker = Tracker(spec.tracking, SystemClock())
    study.reconcile()
    study.progress(spec.budget)
    began = time.perf_counter()
    tracker.sync(study)
    syncs = [time.perf_counter() - began]
    start_limit_s(study.trials(), spec.limits.start_s)
    proposal = study.ask(spec.budget)
    start_s = time.perf_counter() - STARTED
    own = []
    for nth in range(count):
        assert proposal is not None
        began = time.perf_counter()
        study.progress(spec.budget)
        made = study.save(_measured(proposal, num_trials * 2 + nth), {})
        study.save(made, {})
        study.tell(proposal, made)
        study.search_is_over(spec.budget)
        start_limit_s(study.trials(), spec.limits.start_s)
        study.progress(spec.budget)
        synced = time.perf_counter()
        tracker.sync(study)
        syncs.append(time.perf_counter() - synced)
        proposal = study.ask(spec.budget)
        own.append(time.perf_counter() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Needed(start_s, own, peak, syncs)


def _measured(proposal: Proposal, nth: int) -> LaunchRecord:
    import random

    place = (proposal.trial_number, proposal.launch_number, proposal.purpose)
    failure = failure_of(proposal.trial_number) if proposal.trial_number else None
    return record(proposal.canonical, place, nth, random.Random(nth), failure)
