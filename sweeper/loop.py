"""The sweep: ask, launch, tell, until the budget is spent or nothing is left to learn."""

from __future__ import annotations

from dataclasses import replace

from sweeper.deciding.plan import start_limit_s
from sweeper.deciding.verdict import Verdict
from sweeper.errors import FailureKind, NightOver, SweepAborted, SweepInterrupted
from sweeper.facts import changes_between, facts_now
from sweeper.nights.breaker import Breaker, Launch
from sweeper.nights.health import read_health
from sweeper.nights.night import Night
from sweeper.probing.nccl import NcclProbe
from sweeper.records import LaunchRecord, Proposal, Purpose
from sweeper.rig import Rig
from sweeper.storing.leases import LeaseLost
from sweeper.study import Study
from sweeper.tracking import Tracker, view_name
from sweeper.trial import run_launch

FINAL_SYNC_S = 60.0
"""How long the last sync of a sweep may take: nobody waits for a server any more."""

LOOK_S = 5.0
"""How often a worker that waits for others looks whether they are done."""


def run_sweep(rig: Rig, study: Study, tracker: Tracker, launch: Launch = run_launch) -> Verdict:
    """Measure configurations until the budget is spent or nothing is left to learn, then confirm.

    Raises ConfigError (a budget that cannot be kept), SweepAborted (a person must mend something), StopFailed,
    SweepInterrupted.
    """
    stop_leftovers(rig)
    for note in study.reconcile():
        rig.view.notice(note)
    night = Night.begin(rig, study)
    rig.view.sweep_started(study.name, night.progress(), study.baseline)
    sync(tracker, study, rig)
    breaker = Breaker(rig.spec.limits, read_health(rig))
    rig = replace(rig, start_limit_s=start_limit_s(study.trials(), rig.spec.limits.start_s))
    probe = NcclProbe(rig, study)
    while (proposal := next_launch(rig, study, night, probe)) is not None:
        rig.view.launch_started(proposal, night.progress())
        try:
            record = launched(proposal, rig, study, night, breaker.before(launch))
            if record is None:
                break
            study.tell(proposal, record)
        except LeaseLost as lost:
            rig.view.notice(str(lost))
            continue
        rig = after_launch(rig, study, record)
        rig.view.launch_ended(record, night.progress())
        sync(tracker, study, rig)
        breaker.check(record)
    known_through = study.store.read_through
    verdict = study.verdict(rig.engine.simplicity, night.end())
    sync(tracker, study, rig, deadline_s=FINAL_SYNC_S)
    if known_through != study.store.read_through and is_unfinished(rig, study, verdict):
        rig.view.notice(
            "a server of the study's database answers now that had not received all: the sweep goes on"
        )
        return run_sweep(rig, study, tracker, launch)
    return verdict


def is_unfinished(rig: Rig, study: Study, verdict: Verdict) -> bool:
    """Whether launches are to be made, though neither a person nor the night has ended the sweep."""
    is_ended = rig.interrupts.finish_requested or verdict.cut_short
    return not is_ended and study.progress(rig.spec.budget).launches_left > 0


def next_launch(rig: Rig, study: Study, night: Night, probe: NcclProbe) -> Proposal | None:
    """What to launch next, what is asked of the bare host done before; None when the sweep, or the night, ends.

    A worker for which there is nothing to launch now waits until the others are done: one of them may die.
    """
    told = ""
    while not asked_to_end(rig, study) and (budget := night.budget()) is not None:
        try:
            with rig.interrupts.night_ends_in(night.left_s()):
                probe.run_if_due()
        except NightOver:
            return None
        if asked_to_end(rig, study):  # during the probe
            return None
        if (proposal := study.ask(budget)) is not None or not study.waits_for:
            return proposal
        if told != study.waits_for:
            rig.view.notice(f"waiting: {study.waits_for}")
            told = study.waits_for
        rig.clock.sleep(min(LOOK_S, rig.spec.study.lease_s / 4))
    return None


def asked_to_end(rig: Rig, study: Study) -> bool:
    """Whether a person has asked to end after the present launch: here, or all workers of a shared study."""
    if not rig.interrupts.finish_requested and study.store.database.patiently(study.ownership.asked_to_stop):
        rig.interrupts.ask_to_finish()
    return rig.interrupts.finish_requested


def launched(proposal: Proposal, rig: Rig, study: Study, night: Night, launch: Launch) -> LaunchRecord | None:
    """The record of the launch; None when the night ended before it did. Raises SweepAborted, SweepInterrupted.

    A launch that is abandoned counts for nothing: its trial is measured again.
    """
    try:
        with rig.interrupts.night_ends_in(night.left_s()):
            return launch(proposal, rig, study.save)
    except NightOver:
        study.release(proposal)
        return None
    except (SweepInterrupted, SweepAborted):
        study.release(proposal)
        raise


def stop_leftovers(rig: Rig) -> None:
    """Stop what our own records prove is ours. Raises StopFailed."""
    for server_id in rig.launcher.stop_leftovers(rig.spec.limits.stop_grace_s):
        rig.view.notice(f"stopped server {server_id}, which an earlier process had left")


def after_launch(rig: Rig, study: Study, record: LaunchRecord) -> Rig:
    """Clean a dirty host before the next try, say when the search is over, learn how long a start takes, and see
    what was exchanged under the sweep: an engine, a driver.
    """
    if record.failure is not None and record.failure.kind in (FailureKind.HOST_DIRTY, FailureKind.HOST_LOST):
        stop_leftovers(rig)
    if record.purpose is Purpose.SEARCH and (why := study.search_is_over(rig.spec.budget)):
        rig.view.notice(why)
    facts = facts_now(rig.spec, rig.engine, rig.launcher, rig.facts)
    if changes := changes_between(rig.facts, facts):
        rig.view.notice(f"host {rig.launcher.host} has changed: {changes}; launches from before are not compared")
    return replace(rig, facts=facts, start_limit_s=start_limit_s(study.trials(), rig.spec.limits.start_s))


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
    rig.view.synced(report.num_behind, report.error)
    if report.error:
        behind = f"; {report.num_behind} trials behind, tried again later" if report.num_behind else ""
        rig.view.notice(f"MLflow: {report.error}{behind}")
