"""The sweep: ask, launch, tell, until the budget is spent or nothing is left to learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sweeper.deciding.plan import start_limit_s
from sweeper.deciding.verdict import Verdict
from sweeper.errors import FailureKind, SweepAborted, SweepInterrupted
from sweeper.leases import LeaseLost
from sweeper.policy import POLICY, Fault
from sweeper.probing.nccl import NcclProbe
from sweeper.records import LaunchRecord, Proposal, Purpose
from sweeper.rig import Rig
from sweeper.spec import LimitsSpec
from sweeper.study import Study
from sweeper.tracking import Tracker, view_name
from sweeper.trial import Save, run_launch

FINAL_SYNC_S = 60.0
"""How long the last sync of a sweep may take: nobody waits for a server any more."""

LOOK_S = 5.0
"""How often a worker that waits for others looks whether they are done."""

Launch = Callable[[Proposal, Rig, Save], LaunchRecord]


def run_sweep(rig: Rig, study: Study, tracker: Tracker, launch: Launch = run_launch) -> Verdict:
    """Measure configurations until the budget is spent or nothing is left to learn, then confirm.

    Raises SweepAborted (a person must mend something), StopFailed, SweepInterrupted.
    """
    budget = rig.spec.budget
    stop_leftovers(rig)
    for note in study.reconcile():
        rig.view.notice(note)
    rig.view.sweep_started(study.name, study.progress(budget), study.baseline)
    sync(tracker, study, rig)
    breaker = Breaker(rig.spec.limits)
    rig = replace(rig, start_limit_s=start_limit_s(study.trials(), rig.spec.limits.start_s))
    probe = NcclProbe(rig, study)
    while (proposal := next_launch(rig, study, probe)) is not None:
        rig.view.launch_started(proposal, study.progress(budget))
        try:
            record = launch(proposal, rig, study.save)
            study.tell(proposal, record)
        except SweepInterrupted:
            study.release(proposal)
            raise
        except LeaseLost as lost:
            rig.view.notice(str(lost))
            continue
        rig = after_launch(rig, study, record)
        rig.view.launch_ended(record, study.progress(budget))
        sync(tracker, study, rig)
        breaker.check(record)
    verdict = study.verdict(rig.engine.simplicity)
    sync(tracker, study, rig, deadline_s=FINAL_SYNC_S)
    return verdict


def next_launch(rig: Rig, study: Study, probe: NcclProbe) -> Proposal | None:
    """What to launch next, what is asked of the bare host done before; None when the sweep ends.

    A worker for which there is nothing to launch now waits until the others are done: one of them may die.
    """
    told = ""
    while not rig.interrupts.finish_requested:
        probe.run_if_due()
        if (proposal := study.ask(rig.spec.budget)) is not None or not study.waits_for:
            return proposal
        if told != study.waits_for:
            rig.view.notice(f"waiting: {study.waits_for}")
            told = study.waits_for
        rig.clock.sleep(min(LOOK_S, rig.spec.study.lease_s / 4))
    return None


def stop_leftovers(rig: Rig) -> None:
    """Stop what our own records prove is ours. Raises StopFailed."""
    for server_id in rig.launcher.stop_leftovers(rig.spec.limits.stop_grace_s):
        rig.view.notice(f"stopped server {server_id}, which an earlier process had left")


def after_launch(rig: Rig, study: Study, record: LaunchRecord) -> Rig:
    """Clean a dirty host before the next try, say when the search is over, learn how long a start takes."""
    if record.failure is not None and record.failure.kind in (FailureKind.HOST_DIRTY, FailureKind.HOST_LOST):
        stop_leftovers(rig)
    if record.purpose is Purpose.SEARCH and (why := study.search_is_over(rig.spec.budget)):
        rig.view.notice(why)
    return replace(rig, start_limit_s=start_limit_s(study.trials(), rig.spec.limits.start_s))


def sync(tracker: Tracker, study: Study, rig: Rig, deadline_s: float | None = None) -> None:
    """Bring MLflow up to date, as far as it can be reached; say so when it lags behind.

    One worker does it for all that see the same MLflow. At the end (`deadline_s`) another one does it in its
    place if it is gone, which is known when its lease is over.
    """
    view, waited_s = view_name(rig.spec.tracking), 0.0
    while not study.keeps(view):
        if deadline_s is None or waited_s > 1.5 * rig.spec.study.lease_s:
            return
        rig.clock.sleep(1.0)
        waited_s += 1.0
    report = tracker.sync(study, deadline_s)
    if report.error:
        behind = f"; {report.num_behind} trials behind, tried again later" if report.num_behind else ""
        rig.view.notice(f"MLflow: {report.error}{behind}")


class Breaker:
    """Stops the sweep when going on would only burn time.

    That is when the baseline cannot be measured (any more), when `identical_failures` launches in a row were lost
    to the host or to our own tooling, or when twice as many trials in a row failed alike: each of them may be at
    fault, all of them hardly.
    """

    def __init__(self, limits: LimitsSpec) -> None:
        self._limit = limits.identical_failures
        self._in_a_row: list[LaunchRecord] = []

    def check(self, record: LaunchRecord) -> None:
        """Raises SweepAborted, with what was seen and what to do."""
        failure = record.failure
        if failure is None:
            self._in_a_row.clear()
            return
        if any(earlier.failure is None or earlier.failure.kind is not failure.kind for earlier in self._in_a_row):
            self._in_a_row.clear()
        self._in_a_row.append(record)
        count = len(self._in_a_row)
        tries = POLICY[failure.kind].max_launches or self._limit
        if record.purpose in (Purpose.BASELINE, Purpose.CONTROL) and count >= min(tries, self._limit):
            raise SweepAborted(_report("the baseline cannot be measured", record, count))
        if POLICY[failure.kind].fault is not Fault.CONFIGURATION and count >= self._limit:
            raise SweepAborted(_report(f"{count} launches in a row failed alike", record, count))
        trials = {launch.trial_number for launch in self._in_a_row}
        if len(trials) >= 2 * self._limit:
            numbers = ", ".join(map(str, sorted(trials)))
            raise SweepAborted(_report(f"{len(trials)} trials in a row ({numbers}) failed alike", record, count))


def _report(what: str, record: LaunchRecord, count: int) -> str:
    failure = record.failure
    assert failure is not None  # only failed launches are reported
    evidence = [f"  | {line}" for line in failure.evidence[-8:]]
    return "\n".join(
        [
            f"stopped: {what} on host {record.host} ({failure.kind}, {count} in a row). Nothing measured is lost.",
            f"  {failure.message}",
            *evidence,
            "Mend the cause, then run the same command again: the sweep goes on where it stopped.",
        ]
    )
