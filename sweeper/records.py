"""What is kept: one record per launch, gathered per trial. Plain frozen data that round-trips through JSON."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AwareDatetime, Field, PlainSerializer

from sweeper.errors import FailureKind
from sweeper.forecasts import Forecast
from sweeper.metrics import check_metrics
from sweeper.request_record import Record as Record
from sweeper.request_record import RequestResult as RequestResult
from sweeper.spec import FlagValue, ServerConfig

Metrics = Annotated[Mapping[str, float], AfterValidator(check_metrics)]

Settings = Annotated[Mapping[str, FlagValue], PlainSerializer(dict, return_type=dict[str, FlagValue])]
"""Any mapping: thousands of records hold theirs by what differs (storing/memory.py)."""


class Purpose(enum.StrEnum):
    """Why a launch is made.

    CONTROL: the baseline again, in the middle of the search, to see whether the host has drifted. RECHECK: a
    configuration too close to the best to be told apart by its first launch. CONFIRM: a finalist or the baseline,
    in turn.
    """

    BASELINE = "baseline"
    SEARCH = "search"
    CONTROL = "control"
    RECHECK = "recheck"
    CONFIRM = "confirm"

    @property
    def settles(self) -> bool:
        """Whether the launch settles its trial; any other one adds a measurement to a trial that is settled."""
        return self in (Purpose.BASELINE, Purpose.SEARCH)


class TrialState(enum.StrEnum):
    """Where a trial stands. INFEASIBLE: told to the search as a violated constraint, so that it keeps away."""

    RUNNING = "running"
    COMPLETE = "complete"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


class Reference(Record):
    """What a launch is compared with while it is measured, prompt by prompt: the best trial so far.

    `value`: its objective. `prompt_throughputs`: prompt id to output tokens per second in the first pass. Spreads
    are standard deviations of the logarithm, in percent: `launch_noise_pct` from one start of the same server to
    the next (drawn from `launch_noise_degrees` of freedom), `prompt_spread_pct` of a prompt's ratio to the
    reference around the ratio of the whole workload.
    """

    trial_number: int
    value: float
    prompt_throughputs: Mapping[str, float]
    launch_noise_pct: float
    launch_noise_degrees: float
    prompt_spread_pct: float


class Proposal(Record):
    """One launch to make: launch number `launch_number` of trial `trial_number` (both count from 0).

    `reference` is given where falling far behind it ends the measuring early, `forecast` where the search has one.
    """

    trial_number: int
    launch_number: int
    purpose: Purpose
    requested: ServerConfig
    canonical: ServerConfig
    reference: Reference | None = None
    forecast: Forecast | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether this is a launch of the baseline's trial."""
        return self.trial_number == 0


class PhaseTime(Record):
    """How long one phase of a launch took: check, start (in it launch and `start: NAME`), warmup, ..., stop."""

    name: str
    duration_s: float


class Failure(Record):
    """Why a launch has no score, with the lines that show the cause (bounded)."""

    kind: FailureKind
    message: str
    evidence: tuple[str, ...] = ()


class Proof(Record):
    """What shows that a launch measured its own server, started on a clean host and gone afterwards.

    A value that was not seen (yet) is absent. GPU memory in MiB, one number per watched GPU; empty without
    nvidia-smi. `exit_code` is what the supervisor wrote down; a server that kills itself has 137.
    """

    gpu_mib_before: tuple[int, ...] = ()
    port_free_before: bool | None = None
    nonce: str = ""
    model_path: str = ""
    port_owned: bool | None = None
    num_probe_tokens: int | None = None
    stop_signals: tuple[str, ...] = ()
    num_stopped: int | None = None
    exit_code: int | None = None
    port_free_after: bool | None = None
    gpu_mib_after: tuple[int, ...] = ()
    not_clean_after: str = ""

    @property
    def complete(self) -> bool:
        """Whether everything was proved, from the clean host before to the clean host after."""
        seen = (self.port_free_before, self.port_owned, self.port_free_after, self.num_probe_tokens)
        return all(seen) and not self.not_clean_after


class WorkloadResult(Record):
    """The numbers of one workload in one launch.

    `repeat_throughputs`: output tokens per second of each pass over the prompts, in order.
    `prompt_throughputs`: prompt id to output tokens per second over all repeats; `first_pass_throughputs`
    over the first alone; `class_throughputs` by prompt class.
    `accepted_per_position`: for draft position 0, 1, ... how many drafts were accepted there.
    `accept_definition`: which of the server's figures accept_length is drawn from.
    `outputs`: what was written, as marks that can be compared (outputs.py), by `PROMPT_ID#REPEAT`.
    `estimated`: why the objective among the metrics is an estimate: the measuring ended early; else empty.
    `doubts`: reasons to look twice at these numbers, one line each.
    """

    metrics: Metrics = Field(default_factory=dict)
    repeat_throughputs: tuple[float, ...] = ()
    prompt_throughputs: Mapping[str, float] = {}
    first_pass_throughputs: Mapping[str, float] = {}
    class_throughputs: Mapping[str, float] = {}
    accepted_per_position: tuple[int, ...] = ()
    accept_definition: str = ""
    outputs: Mapping[str, str] = {}
    estimated: str = ""
    doubts: tuple[str, ...] = ()


class Measurement(WorkloadResult):
    """What the benchmark saw of one workload: the numbers, and the raw requests that they are drawn from."""

    requests: tuple[RequestResult, ...]
    warmups: tuple[RequestResult, ...] = ()


class GpuWindow(Record):
    """What nvidia-smi showed of the watched GPUs while a launch was measured; empty without nvidia-smi.

    One number per GPU, in the order of `gpus`: mean and lowest SM clock (MHz), mean and highest temperature
    (degrees Celsius), mean power (W). `throttled`: reason to the share of samples (0 to 1) that show it on any
    GPU. `others`: processes of somebody else that held memory of a watched GPU meanwhile.
    `notes`: what is worth knowing and no reason for doubt (at its power limit, samples that failed).
    """

    num_samples: int = 0
    gpus: tuple[int, ...] = ()
    sm_clock_mhz: tuple[float, ...] = ()
    lowest_sm_clock_mhz: tuple[float, ...] = ()
    temperature_c: tuple[float, ...] = ()
    highest_temperature_c: tuple[float, ...] = ()
    power_w: tuple[float, ...] = ()
    throttled: Mapping[str, float] = {}
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class LaunchRecord(WorkloadResult):
    """Everything kept about one launch; its own numbers are the first workload's, `others` has the further ones.

    Raw requests and the log are artifacts beside it. `lossy`: flags by which this configuration may write other
    text than the baseline, each with the reason.
    """

    trial_number: int
    launch_number: int
    purpose: Purpose
    requested: ServerConfig
    canonical: ServerConfig
    effective: Settings = Field(default_factory=dict)
    surprises: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    host: str
    server_id: str = ""
    started_at: AwareDatetime
    ended_at: AwareDatetime
    phases: tuple[PhaseTime, ...] = ()
    others: Mapping[str, WorkloadResult] = {}
    lossy: tuple[str, ...] = ()
    gpu: GpuWindow = GpuWindow()
    proof: Proof = Proof()
    failure: Failure | None = None
    provenance: Mapping[str, str] = {}

    @property
    def ok(self) -> bool:
        """Whether the launch was measured."""
        return self.failure is None


class TrialRecord(Record):
    """One distinct server configuration and all its launches. `forecast`: what the search expected of it."""

    number: int
    key: str
    state: TrialState
    requested: ServerConfig
    canonical: ServerConfig
    launches: tuple[LaunchRecord, ...] = ()
    forecast: Forecast | None = None
    artifacts: Mapping[str, str] = {}

    @property
    def is_baseline(self) -> bool:
        """Trial 0 is the baseline: the configuration without speculative decoding."""
        return self.number == 0

    @cached_property
    def measured(self) -> tuple[LaunchRecord, ...]:
        """The launches that were measured, oldest first. Asked of all trials again and again."""
        return tuple([launch for launch in self.launches if launch.failure is None])

    @cached_property
    def drawn(self) -> dict[str, Any]:
        """What others have drawn from this very record and keep with it, under the name of what it depends on."""
        return {}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, without what was drawn from the launches, which the copy may have others of."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("measured", "drawn"):
            copied.__dict__.pop(name, None)
        return copied

    @property
    def failure(self) -> Failure | None:
        """The newest failure, if no launch was measured; a trial put aside without any launch was interrupted."""
        if self.measured or self.state is TrialState.RUNNING:
            return None
        if not self.launches:
            return Failure(kind=FailureKind.INTERRUPTED, message="specsweep died in each launch of it")
        return self.launches[-1].failure

    def mean(self, metric: str) -> float | None:
        """Mean of `metric` over the measured launches that have it; None when none has."""
        values = [launch.metrics[metric] for launch in self.measured if metric in launch.metrics]
        return sum(values) / len(values) if values else None


def prediction_error_pct(trial: TrialRecord, objective: str) -> float | None:
    """How far the first measured value lies above what the search expected of it, in percent of that.

    None without a prediction, before a measurement, and for a value that is itself an estimate.
    """
    span = trial.forecast.throughput if trial.forecast else None
    first = trial.measured[0] if trial.measured else None
    if span is None or first is None or first.estimated or objective not in first.metrics:
        return None
    return span.error_pct(first.metrics[objective])


def launch_artifact_name(launch_number: int, name: str) -> str:
    """The name under which a launch's artifact (`requests.jsonl`, `server.log`) is kept."""
    return f"launch-{launch_number}-{name}"


def duration_s(start: datetime.datetime, end: datetime.datetime) -> float:
    """Seconds between two moments."""
    return (end - start).total_seconds()
