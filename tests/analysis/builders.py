"""Synthetic trials, and real studies that hold them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna

from sweeper.errors import FailureKind
from sweeper.forecasts import Forecast
from sweeper.records import (
    Failure,
    LaunchRecord,
    PhaseTime,
    Purpose,
    RequestResult,
    TrialRecord,
    TrialState,
)
from sweeper.samplers import physics
from sweeper.samplers.physics.forecast import FORECAST_ATTR, Estimate, to_json
from sweeper.spec import FlagValue, ServerConfig
from sweeper.storing.storage import StudyStore

NIGHT = datetime.datetime(2026, 3, 1, 22, 10, tzinfo=datetime.UTC)
BASE_FLAGS: dict[str, FlagValue] = {"threads": 1, "ctx_size": 2048}
PROMPTS = ("notice", "recipe")
OBJECTIVE = "output_throughput"
FINGERPRINT = {
    "engine.name": "llamacpp",
    "engine.version": "b11549",
    "engine.flags.threads": "1",
    "host.name": "gpu1",
    "model.name": "smollm2_f16",
    "model.content": "0123456789abcdef",
    "objective": OBJECTIVE,
    "space.spec_type": "choice {'values': ('ngram-simple', 'ngram-map-k')}",
    "workload.prompts": "2 prompts, sha256 ffeeddccbbaa",
    "workload.repeats": "2",
}
_STATES = {
    TrialState.RUNNING: optuna.trial.TrialState.RUNNING,
    TrialState.COMPLETE: optuna.trial.TrialState.COMPLETE,
    TrialState.INFEASIBLE: optuna.trial.TrialState.PRUNED,
    TrialState.FAILED: optuna.trial.TrialState.FAIL,
}


@dataclass(frozen=True)
class Night:
    """Numbers launches so that each starts 40 s after the one before."""

    starts: list[datetime.datetime]

    def next_start(self) -> datetime.datetime:
        self.starts.append(NIGHT + datetime.timedelta(seconds=40 * len(self.starts)))
        return self.starts[-1]


def new_night() -> Night:
    return Night([])


def ngram(n: int, m: int, **more: FlagValue) -> ServerConfig:
    """A speculative configuration."""
    return ServerConfig(flags={**BASE_FLAGS, "spec_type": "ngram-simple", "size_n": n, "size_m": m, **more})


def plain_config() -> ServerConfig:
    """The baseline's configuration."""
    return ServerConfig(flags=BASE_FLAGS)


def measured(
    night: Night, value: float, purpose: Purpose = Purpose.SEARCH, *, drafted: bool = True
) -> LaunchRecord:
    """A launch that did `value` tok/s, in two passes 1 % apart. `launch_into` gives it its place."""
    start = night.next_start()
    metrics = {
        OBJECTIVE: value,
        "ttft_ms": 1000 / value,
        "tpot_ms": 990 / value,
        "num_output_tokens": 192.0,
        "repeat_spread_pct": 1.0,
    }
    phases = {"start": 1.0, "warmup": 2.0, "benchmark": 30.0, "stop": 0.5}
    return LaunchRecord(
        trial_number=0,
        launch_number=0,
        purpose=purpose,
        requested=plain_config(),
        canonical=plain_config(),
        effective={"threads": 1},
        argv=("llama-server", "--port", "18200", "--alias", "specsweep a"),
        host="gpu1",
        started_at=start,
        ended_at=start + datetime.timedelta(seconds=34),
        phases=tuple(PhaseTime(name=name, duration_s=time) for name, time in phases.items()),
        metrics={**metrics, **({"accept_length": 2.345} if drafted else {})},
        repeat_throughputs=(value * 0.995, value * 1.005),
        prompt_throughputs={PROMPTS[0]: value * 1.2, PROMPTS[1]: value * 0.8},
        provenance={"engine_version": "b11549", "host": "gpu1"},
    )


def failed(
    night: Night, kind: FailureKind, message: str = "it broke", evidence: Sequence[str] = ()
) -> LaunchRecord:
    """A launch that ended in a failure after its start."""
    launch = measured(night, 1.0)
    return launch.model_copy(
        update={
            "metrics": {"start_s": 1.0},
            "phases": (PhaseTime(name="start", duration_s=1.0),),
            "repeat_throughputs": (),
            "prompt_throughputs": {},
            "effective": {},
            "failure": Failure(kind=kind, message=message, evidence=tuple(evidence)),
        }
    )


def trial(
    number: int,
    config: ServerConfig,
    launches: Sequence[LaunchRecord],
    state: TrialState = TrialState.COMPLETE,
) -> TrialRecord:
    """A trial with these launches, numbered in their order."""
    placed = tuple(
        launch.model_copy(
            update={
                "trial_number": number,
                "launch_number": index,
                "requested": config,
                "canonical": config,
                "argv": (*launch.argv, *(part for n, v in config.flags.items() for part in (f"--{n}", str(v)))),
            }
        )
        for index, launch in enumerate(launches)
    )
    return TrialRecord(
        number=number, key=config.key(), state=state, requested=config, canonical=config, launches=placed
    )


def request(prompt: str, repeat: int = 0) -> RequestResult:
    """One measured request."""
    return RequestResult(
        prompt_id=prompt,
        prompt_class="copy",
        repeat=repeat,
        sent_at=NIGHT,
        e2e_latency_ms=1000.0,
        ttft_ms=20.0,
        num_output_tokens=48,
    )


def request_lines() -> bytes:
    """What a launch's `requests.jsonl` holds."""
    lines = (request(prompt, repeat) for repeat in range(2) for prompt in PROMPTS)
    return "".join(line.model_dump_json(exclude_none=True) + "\n" for line in lines).encode()


def in_memory(tmp_path: Path, name: str = "night") -> StudyStore:
    """An empty study whose summaries are in memory; its artifacts are files as always."""
    folder = tmp_path / "artifacts" / name
    folder.mkdir(parents=True)
    return StudyStore(optuna.create_study(study_name=name, direction="maximize"), folder)


def fill(
    store: StudyStore, trials: Sequence[TrialRecord], fingerprint: Mapping[str, str] = FINGERPRINT
) -> StudyStore:
    """Write the trials into an empty study, as a sweep does: confirming launches after their trial was told."""
    store.set_fact("fingerprint", dict(fingerprint))
    for record in trials:
        store.optuna.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING))
        frozen = store.frozen(record.number)
        written = optuna.trial.Trial(store.optuna, frozen._trial_id)
        written.set_user_attr("requested", record.requested.model_dump())
        written.set_user_attr("canonical", record.canonical.model_dump())
        written.set_user_attr("key", record.key)
        if record.forecast is not None:
            attr = to_json(_foretold(record.forecast))
            store.optuna._storage.set_trial_system_attr(frozen._trial_id, FORECAST_ATTR, attr)
        first = [launch for launch in record.launches if launch.purpose is not Purpose.CONFIRM]
        _save(store, first)
        if record.state is not TrialState.RUNNING:
            value = record.measured[0].metrics[OBJECTIVE] if record.state is TrialState.COMPLETE else None
            store.optuna.tell(record.number, value, state=_STATES[record.state])
        _save(store, [launch for launch in record.launches if launch not in first])
    return store


def _foretold(forecast: Forecast) -> physics.Forecast:
    """As the sampler writes it down."""
    spans = (forecast.throughput, forecast.accept_length, forecast.step_ms)
    throughput, accept, step = (None if s is None else Estimate(s.mean, s.low, s.high) for s in spans)
    gain, left = (None if pct is None else pct / 100 for pct in (forecast.gain_pct, forecast.remaining_pct))
    return physics.Forecast(throughput, accept, step, forecast.p_start, forecast.reason, gain, left)


def _save(store: StudyStore, launches: Sequence[LaunchRecord]) -> None:
    for launch in launches:
        files = {"server.log": b"a log\n", **({"requests.jsonl": request_lines()} if launch.ok else {})}
        store.save_launch(launch, files)


def simplicity(config: ServerConfig) -> tuple[float, ...]:
    """Fewer drafted tokens are simpler."""
    return (float(config.flags.get("size_m", 0)),)


def won_night() -> list[TrialRecord]:
    """A finished sweep with a clear winner, one infeasible and one failed trial."""
    night = new_night()
    launches = {
        0: [measured(night, 41.8, Purpose.BASELINE, drafted=False)],
        1: [measured(night, 51.5)],
        2: [measured(night, 45.6)],
        3: [failed(night, FailureKind.OUT_OF_MEMORY, "the server ran out of memory", ["E oom: 3.1 GiB asked"])],
        4: [failed(night, FailureKind.BENCHMARK_FAILED) for _ in range(2)],
    }
    for values in ((41.7, 51.3, 45.7), (41.9, 51.6, 45.5)):
        for number, value in enumerate(values):
            launches[number].append(measured(night, value, Purpose.CONFIRM, drafted=number > 0))
    return [
        trial(0, plain_config(), launches[0]),
        trial(1, ngram(3, 4), launches[1]),
        trial(2, ngram(3, 7), launches[2]),
        trial(3, ngram(4, 31), launches[3], TrialState.INFEASIBLE),
        trial(4, ngram(2, 3), launches[4], TrialState.FAILED),
    ]
