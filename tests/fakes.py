"""Fakes that several test folders share: a clock that is wound by hand, and builders of records."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from sweeper.deciding.plan import Progress
from sweeper.errors import FailureKind
from sweeper.measuring.load import Load, loads_of
from sweeper.records import (
    Failure,
    LaunchRecord,
    PhaseTime,
    Proposal,
    Purpose,
    RequestResult,
    TrialRecord,
    TrialState,
)
from sweeper.spec import FlagValue, ServerConfig
from sweeper.workload_spec import WorkloadSpec

EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CONFIRM_AFTER = datetime.timedelta(minutes=60)
"""Confirming launches are made so long after the trial's own: after the search of the first six trials."""


def load_of(workload: WorkloadSpec) -> Load:
    """The load of a workload that is alone in its launch."""
    return loads_of([workload])[0]


class FakeClock:
    """Time passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def monotonic_s(self) -> float:
        return self.elapsed_s

    def boottime_s(self) -> float:
        return self.elapsed_s

    def zone(self) -> datetime.tzinfo:
        return datetime.UTC

    def now(self) -> datetime.datetime:
        return EPOCH + datetime.timedelta(seconds=self.elapsed_s)

    def sleep(self, seconds: float) -> None:
        self.elapsed_s += max(0.0, seconds)


class RecordingView:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.launches: list[Proposal] = []
        self.ended: list[LaunchRecord] = []

    def sweep_started(self, study: str, progress: Progress, baseline: ServerConfig) -> None: ...

    def launch_started(self, proposal: Proposal, progress: Progress) -> None:
        self.launches.append(proposal)

    def phase(self, name: str) -> None: ...

    def request_done(self, result: RequestResult, done: int, total: int) -> None: ...

    def launch_ended(self, record: LaunchRecord, progress: Progress) -> None:
        self.ended.append(record)

    def synced(self, behind: int, error: str) -> None: ...

    def notice(self, text: str) -> None:
        self.notices.append(text)


def config(**flags: FlagValue) -> ServerConfig:
    return ServerConfig(flags=flags)


def launch(
    value: float | None,
    *,
    trial: int = 0,
    number: int = 0,
    purpose: Purpose = Purpose.SEARCH,
    failure: FailureKind | None = None,
    repeats: Sequence[float] = (),
    flags: Mapping[str, FlagValue] | None = None,
) -> LaunchRecord:
    """A launch of ten seconds; `value` is its throughput."""
    made = ServerConfig(flags=flags or {})
    began = EPOCH + datetime.timedelta(minutes=10 * trial + number)
    if purpose is Purpose.CONFIRM:
        began += CONFIRM_AFTER
    return LaunchRecord(
        trial_number=trial,
        launch_number=number,
        purpose=purpose,
        requested=made,
        canonical=made,
        host="here",
        started_at=began,
        ended_at=began + datetime.timedelta(seconds=10),
        phases=(PhaseTime(name="start", duration_s=2.0), PhaseTime(name="benchmark", duration_s=6.0)),
        metrics={} if value is None else {"output_throughput": value},
        repeat_throughputs=tuple(repeats),
        failure=None if failure is None else Failure(kind=failure, message="it failed", evidence=("line",)),
    )


def trial(
    number: int,
    values: Sequence[float] = (),
    *,
    confirm: Sequence[float] = (),
    state: TrialState = TrialState.COMPLETE,
    failure: FailureKind | None = None,
    repeats: Sequence[float] = (),
    **flags: FlagValue,
) -> TrialRecord:
    """A trial with one launch per value, then one confirming launch per value of `confirm`."""
    purpose = Purpose.BASELINE if number == 0 else Purpose.SEARCH
    launches = [
        launch(value, trial=number, number=i, purpose=purpose, repeats=repeats, flags=flags)
        for i, value in enumerate(values)
    ]
    launches += [
        launch(value, trial=number, number=len(values) + i, purpose=Purpose.CONFIRM, flags=flags)
        for i, value in enumerate(confirm)
    ]
    if failure is not None:
        launches.append(launch(None, trial=number, number=len(launches), failure=failure, flags=flags))
    made = ServerConfig(flags=flags)
    return TrialRecord(
        number=number, key=made.key(), state=state, requested=made, canonical=made, launches=tuple(launches)
    )
