"""What `specsweep status --json` prints. Keys stay; new ones may come. Plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import AwareDatetime

from sweeper.records import Record


class Best(Record):
    """The best configuration so far.

    `luck_pct`: how far above the baseline the luckiest of as many equals may seem; `beyond_luck`: it is further.
    """

    trial: int
    name: str
    value: float
    estimated: bool = False
    ratio: float | None = None
    luck_pct: float | None = None
    beyond_luck: bool | None = None


class Failed(Record):
    """A launch that failed."""

    trial: int
    launch: int
    kind: str
    message: str
    ended_at: AwareDatetime


class Now(Record):
    """What a running process does. `expected_s`: how long this phase took in its earlier launches.

    `is_alive` is None where that cannot be seen from here: the process runs on another machine.
    """

    worker: str
    host: str
    pid: int
    is_alive: bool | None
    written_at: AwareDatetime
    trial: int | None = None
    launch: int | None = None
    purpose: str = ""
    title: str = ""
    phase: str = ""
    phase_began_at: AwareDatetime | None = None
    expected_s: float | None = None


class Left(Record):
    """What is left, as the process knew it at `at`: at most so many launches.

    Seconds to the end: `eta_s`, in nine of ten cases between `low_s` and `high_s`. `deadline_at`: when the sweep
    is to end, if that was asked for.
    """

    at: AwareDatetime
    trials_total: int
    launches: int
    eta_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    deadline_at: AwareDatetime | None = None


class Lag(Record):
    """How far MLflow is behind the study, in trials; as of `at`."""

    behind: int
    error: str
    at: AwareDatetime


class Standing(Record):
    """A sweep at one moment. `trials`: how many are in each state; `launches`: how many of each purpose.

    `course`: the best value so far after each scored trial, thinned to 60 points. `last_at`: when a launch last
    began or ended. `damaged`: what of the launches and facts that were looked at cannot be read, a line each.
    """

    study: str
    objective: str
    unit: str
    at: AwareDatetime
    trials: Mapping[str, int]
    launches: Mapping[str, int]
    baseline: float | None = None
    best: Best | None = None
    course: tuple[float, ...] = ()
    failures: tuple[Failed, ...] = ()
    running: tuple[int, ...] = ()
    now: tuple[Now, ...] = ()
    left: Left | None = None
    mlflow: Lag | None = None
    verdict: str | None = None
    last_at: AwareDatetime | None = None
    damaged: tuple[str, ...] = ()
