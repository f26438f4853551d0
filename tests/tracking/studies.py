"""Studies made of thin air: the same numbers give the same records, in every process."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sweeper.errors import FailureKind
from sweeper.records import (
    Failure,
    LaunchRecord,
    PhaseTime,
    Purpose,
    RequestResult,
    TrialRecord,
    TrialState,
    WorkloadResult,
    launch_artifact_name,
)
from sweeper.spec import FlagValue, ServerConfig

START = datetime.datetime(2026, 3, 1, 22, 0, tzinfo=datetime.UTC)
COMMON: Mapping[str, FlagValue] = {"ctx_size": 4096, "threads": 2}
PROVENANCE = {"engine.version": "b9000", "model.name": "smollm2-135m", "host": "local"}


@dataclass
class FakeStudy:
    """A study as the tracker sees it; `reads` lists the artifacts that were asked for."""

    name: str = "night"
    identity: str = "a1b2c3d4e5f6"
    objective: str = "output_throughput"
    records: list[TrialRecord] = field(default_factory=list)
    artifacts: dict[tuple[int, str], bytes] = field(default_factory=dict)
    verdict: str | None = None
    facts: Mapping[str, str] = field(default_factory=lambda: dict(PROVENANCE))
    reads: list[tuple[int, str]] = field(default_factory=list)

    def trials(self) -> list[TrialRecord]:
        return list(self.records)

    def artifact(self, trial_number: int, name: str) -> bytes:
        self.reads.append((trial_number, name))
        return self.artifacts[trial_number, name]

    def verdict_text(self) -> str | None:
        return self.verdict

    def add(self, trial: TrialRecord) -> None:
        """Put a trial in (or in the place of the one of its number), with artifacts for its launches."""
        names = {}
        for launch in trial.launches:
            for name, content in artifacts(launch).items():
                full = launch_artifact_name(launch.launch_number, name)
                self.artifacts[trial.number, full] = content
                names[full] = full
        kept = [record for record in self.records if record.number != trial.number]
        self.records = sorted([*kept, trial.model_copy(update={"artifacts": names})], key=lambda t: t.number)

    def first(self, count: int) -> FakeStudy:
        """The same study when it had `count` trials."""
        return replace(self, records=self.records[:count])


def artifacts(launch: LaunchRecord) -> dict[str, bytes]:
    """A log, and the requests of a measured launch."""
    files = {"server.log": f"log of trial {launch.trial_number}\n".encode()}
    if launch.ok:
        rows = [request(launch, number).model_dump_json() for number in range(6)]
        files["requests.jsonl"] = "\n".join(rows).encode()
    return files


def request(launch: LaunchRecord, number: int) -> RequestResult:
    return RequestResult(
        prompt_id=f"p{number % 3}",
        prompt_class="copy" if number % 2 else "chat",
        repeat=number // 3,
        sent_at=launch.started_at + datetime.timedelta(seconds=number),
        e2e_latency_ms=700.0 + number,
        ttft_ms=41.5,
        num_prompt_tokens=33,
        num_output_tokens=64,
        finish_reason="length",
    )


def config(flags: Mapping[str, FlagValue], env: Mapping[str, str] | None = None) -> ServerConfig:
    return ServerConfig(flags={**COMMON, **flags}, env=env or {})


def launch(number: int, settings: ServerConfig, launch_number: int = 0, **changes: Any) -> LaunchRecord:
    """A measured launch of trial `number`; trial 0 reaches 80 tok/s, every further one 4 more."""
    start = START + datetime.timedelta(minutes=5 * number + 100 * launch_number)
    rate = 80.0 + 4 * number + launch_number
    metrics = {
        "output_throughput": rate,
        "decode_throughput": rate + 5,
        "ttft_ms": 40.123,
        "tpot_ms": 1000 / rate,
        "accept_length": 1.5 + number / 10,
    }
    if not number:
        del metrics["accept_length"]
    argv = ["llama-server", "--port", "8080", *(f"--{k}={v}" for k, v in settings.flags.items())]
    fields: dict[str, Any] = {
        "trial_number": number,
        "launch_number": launch_number,
        "purpose": Purpose.CONFIRM if launch_number else Purpose.SEARCH if number else Purpose.BASELINE,
        "requested": settings,
        "canonical": settings,
        "argv": tuple(argv),
        "host": "local",
        "started_at": start,
        "ended_at": start + datetime.timedelta(minutes=4),
        "phases": (PhaseTime(name="start", duration_s=3.25), PhaseTime(name="stop", duration_s=0.5)),
        "metrics": metrics,
        "repeat_throughputs": (rate - 1, rate, rate + 1),
    }
    return LaunchRecord(**(fields | changes))


def trial(
    number: int, settings: ServerConfig, state: TrialState = TrialState.COMPLETE, **changes: Any
) -> TrialRecord:
    fields: dict[str, Any] = {
        "number": number,
        "key": settings.key(),
        "state": state,
        "requested": settings,
        "canonical": settings,
        "launches": (launch(number, settings),),
    }
    return TrialRecord(**(fields | changes))


def failed_trial(
    number: int, settings: ServerConfig, kind: FailureKind = FailureKind.OUT_OF_MEMORY
) -> TrialRecord:
    failure = Failure(kind=kind, message="the server ran out of memory", evidence=("alloc failed: 9 GiB",))
    attempt = launch(number, settings, metrics={}, repeat_throughputs=(), failure=failure)
    return trial(number, settings, TrialState.INFEASIBLE, launches=(attempt,))


def spec_config(number: int) -> ServerConfig:
    return config(
        {"spec_type": "ngram-simple", "spec_ngram_size_n": 2 + number % 4, "spec_ngram_size_m": 4 * number}
    )


def make_study(count: int) -> FakeStudy:
    """A baseline and `count` - 1 searched trials, of which trial 3 ran out of memory."""
    study = FakeStudy()
    study.add(trial(0, config({})))
    for number in range(1, count):
        settings = spec_config(number)
        study.add(failed_trial(number, settings) if number == 3 else trial(number, settings))
    return study


def noted_trial(number: int) -> TrialRecord:
    """A trial with two workloads, of which one has a name with a space in it, that ended early and is doubtful."""
    settings = spec_config(number)
    busy = WorkloadResult(metrics={"output_throughput": 310.5, "ttft_p99_ms": 900.0}, doubts=("sent late",))
    noted: dict[str, Any] = {
        "others": {"very busy": busy},
        "estimated": "stopped after 1 of 5 prompts",
        "lossy": ("kv fp8: rounds",),
    }
    return trial(number, settings, launches=(launch(number, settings, **noted),))
