"""What is kept: one record per launch, gathered per trial. Plain frozen data that round-trips through JSON."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict

from sweeper.errors import FailureKind
from sweeper.metrics import check_metrics
from sweeper.spec import FlagValue, ServerConfig

Metrics = Annotated[Mapping[str, float], AfterValidator(check_metrics)]


class Record(BaseModel):
    """Base: immutable, and refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Purpose(enum.StrEnum):
    """Why a launch is made."""

    BASELINE = "baseline"
    SEARCH = "search"
    CONFIRM = "confirm"


class TrialState(enum.StrEnum):
    """Where a trial stands. INFEASIBLE: told to the search as a violated constraint, so that it keeps away."""

    RUNNING = "running"
    COMPLETE = "complete"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


class Proposal(Record):
    """One launch to make: launch number `launch_number` of trial `trial_number` (both count from 0)."""

    trial_number: int
    launch_number: int
    purpose: Purpose
    requested: ServerConfig
    canonical: ServerConfig

    @property
    def is_baseline(self) -> bool:
        """Whether this is a launch of the baseline's trial."""
        return self.trial_number == 0


class RequestResult(Record):
    """One measured (or warm-up) request. A value that was not measured is absent (None).

    Times in milliseconds from the moment the connection stands; `ttft_ms` ends with the first chunk that
    holds text. `repeat` counts the passes over the prompts from 0; warm-ups have -1. `num_tries`: above 1
    when the way to the host broke meanwhile. `num_verify_steps` counts the
    decode steps in which drafts were verified; `accept_histogram[n]` those of them that accepted n drafts.
    """

    prompt_id: str
    prompt_class: str
    repeat: int
    num_tries: int = 1
    sent_at: AwareDatetime
    e2e_latency_ms: float
    ttft_ms: float | None = None
    num_prompt_tokens: int | None = None
    num_output_tokens: int
    num_drafted_tokens: int | None = None
    num_accepted_tokens: int | None = None
    num_verify_steps: int | None = None
    server_decode_ms: float | None = None
    accept_histogram: tuple[int, ...] = ()
    accept_source: str = ""
    finish_reason: str = ""
    output_sha256: str = ""


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


class Measurement(Record):
    """What the benchmark saw: raw requests, and the numbers drawn from them.

    `repeat_throughputs`: output tokens per second of each pass over the prompts, in order.
    `prompt_throughputs`: prompt id to output tokens per second over all repeats.
    `accepted_per_position`: for draft position 0, 1, ... how many drafts were accepted there.
    `accept_definition`: which of the server's figures accept_length is drawn from.
    """

    requests: tuple[RequestResult, ...]
    warmups: tuple[RequestResult, ...] = ()
    metrics: Metrics
    repeat_throughputs: tuple[float, ...]
    prompt_throughputs: Mapping[str, float]
    accepted_per_position: tuple[int, ...] = ()
    accept_definition: str = ""


class LaunchRecord(Record):
    """Everything kept about one launch. Raw requests and the log are artifacts beside it."""

    trial_number: int
    launch_number: int
    purpose: Purpose
    requested: ServerConfig
    canonical: ServerConfig
    effective: Mapping[str, FlagValue] = {}
    surprises: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    host: str
    server_id: str = ""
    started_at: AwareDatetime
    ended_at: AwareDatetime
    phases: tuple[PhaseTime, ...] = ()
    metrics: Metrics = {}
    repeat_throughputs: tuple[float, ...] = ()
    prompt_throughputs: Mapping[str, float] = {}
    accepted_per_position: tuple[int, ...] = ()
    accept_definition: str = ""
    proof: Proof = Proof()
    failure: Failure | None = None
    provenance: Mapping[str, str] = {}

    @property
    def ok(self) -> bool:
        """Whether the launch was measured."""
        return self.failure is None


class TrialRecord(Record):
    """One distinct server configuration and all its launches, as the study knows it."""

    number: int
    key: str
    state: TrialState
    requested: ServerConfig
    canonical: ServerConfig
    launches: tuple[LaunchRecord, ...] = ()
    artifacts: Mapping[str, str] = {}

    @property
    def is_baseline(self) -> bool:
        """Trial 0 is the baseline: the configuration without speculative decoding."""
        return self.number == 0

    @property
    def measured(self) -> tuple[LaunchRecord, ...]:
        """The launches that were measured, oldest first."""
        return tuple(launch for launch in self.launches if launch.ok)

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


def launch_artifact_name(launch_number: int, name: str) -> str:
    """The name under which a launch's artifact (`requests.jsonl`, `server.log`) is kept."""
    return f"launch-{launch_number}-{name}"


def duration_s(start: datetime.datetime, end: datetime.datetime) -> float:
    """Seconds between two moments."""
    return (end - start).total_seconds()
