"""Circuit breakers: what ends a sweep because going on would only burn time, or harm the host."""

from __future__ import annotations

from collections.abc import Callable

from sweeper.errors import SweepAborted
from sweeper.launch_record import Save
from sweeper.nights.health import Health, new_gpu_errors, read_health
from sweeper.policy import POLICY, Fault
from sweeper.records import LaunchRecord, Proposal, Purpose
from sweeper.rig import Rig
from sweeper.spec import LimitsSpec

Launch = Callable[[Proposal, Rig, Save], LaunchRecord]
"""Makes one launch and saves its record."""


class Breaker:
    """Stops the sweep when going on would only burn time.

    That is when the baseline cannot be measured (any more), when `identical_failures` launches in a row were lost
    to the host or to our own tooling, or when twice as many trials in a row failed alike: each of them may be at
    fault, all of them hardly. Also when a GPU's hardware failed (since the `first` look), when one was hotter than
    it may be, and when a disk is nearly full.
    """

    def __init__(self, limits: LimitsSpec, first: Health) -> None:
        self._limits = limits
        self._limit = limits.identical_failures
        self._first = first
        self._in_a_row: list[LaunchRecord] = []

    def before(self, launch: Launch) -> Launch:
        """The same launch on a host that was looked at and has room. It raises SweepAborted in its place."""

        def looked_at(proposal: Proposal, rig: Rig, save: Save) -> LaunchRecord:
            self.check_host(read_health(rig), rig.launcher.host)
            rig.make_room()
            return launch(proposal, rig, save)

        return looked_at

    def check_host(self, health: Health, host: str) -> None:
        """Raises SweepAborted, with what was seen and what to do."""
        if self._limits.gpu_errors and (errors := new_gpu_errors(self._first, health)):
            raise SweepAborted(_host_report(f"a GPU of host {host} has failed", errors[:20]))
        free = {f"on host {host}": health.host_free_gib, "here, where the study is": health.own_free_gib}
        limit = self._limits.free_gib
        full = [f"{gib:.1f} GiB free {where}" for where, gib in free.items() if gib is not None and gib < limit]
        if full:
            raise SweepAborted(_host_report(f"a disk is nearly full (limits.free_gib={limit:g})", full))

    def check(self, record: LaunchRecord) -> None:
        """After a launch. Raises SweepAborted, with what was seen and what to do."""
        self._check_heat(record)
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

    def _check_heat(self, record: LaunchRecord) -> None:
        limit = self._limits.gpu_temperature_c
        hot = [
            f"GPU {index}: up to {celsius:.0f} °C"
            for index, celsius in zip(record.gpu.gpus, record.gpu.highest_temperature_c, strict=False)
            if limit is not None and celsius > limit
        ]
        if hot:
            what = f"too hot on host {record.host} in trial {record.trial_number}"
            raise SweepAborted(_host_report(f"{what} (limits.gpu_temperature_c={limit:g})", hot))


def _host_report(what: str, evidence: list[str]) -> str:
    return "\n".join(
        [
            f"stopped: {what}. Nothing measured is lost.",
            *(f"  | {line}" for line in evidence),
            "Mend the cause, then run the same command again: the sweep goes on where it stopped.",
        ]
    )


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
