"""Launch records as SGLang's are: 16 KB of JSON, of which two thirds are what the server said of itself."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping

from sweeper.engines.base import HostFacts
from sweeper.errors import FailureKind
from sweeper.records import Failure, GpuWindow, LaunchRecord, PhaseTime, Proof, Purpose
from sweeper.spec import FlagValue, ServerConfig
from sweeper.text_marks import marks

FACTS = HostFacts(
    engine_version="0.5.23",
    model_path="/models/m",
    model_fingerprint="26890e6f1b2525ac",
    gpu_names=("NVIDIA RTX PRO 6000 Blackwell Server Edition",) * 8,
)
BEGAN = datetime.datetime(2026, 3, 1, 22, 10, tzinfo=datetime.UTC)
HOST = "gpu1"
LAUNCH_S = 180.0
PROMPTS = ("queue", "river", "proof", "recipe", "tables")
NUM_SERVER_FLAGS = 300
_TEXTS = {name: f"{name} " * 40 for name in PROMPTS}
_SERVER: Mapping[str, FlagValue] = {
    f"server_setting_number_{i}": (i % 7, f"value {i}", i % 2 == 0, i / 8)[i % 4] for i in range(NUM_SERVER_FLAGS)
}
_PROVENANCE = {
    "engine": "sglang",
    "engine_version": "0.5.23",
    "model": "m",
    "model_fingerprint": "26890e6f1b2525ac",
    "host": HOST,
    "workload": "single_stream",
    "prompts": "5 prompts, sha256 e626645a30aa",
    "gpus": ", ".join(FACTS.gpu_names),
    "driver": "590.44.01",
    "specsweep_version": "0",
}
_METRICS = ("ttft_ms", "ttft_p99_ms", "tpot_ms", "e2e_latency_ms", "decode_throughput", "start_s")


def record(
    config: ServerConfig, place: tuple[int, int, Purpose], nth: int, rng: random.Random, failure: Failure | None
) -> LaunchRecord:
    """A launch, the `nth` of its study. `place`: trial, launch number and purpose. One in ten ended early."""
    number, launch_number, purpose = place
    began = BEGAN + datetime.timedelta(seconds=nth * LAUNCH_S)
    made = LaunchRecord(
        trial_number=number,
        launch_number=launch_number,
        purpose=purpose,
        requested=config,
        canonical=config,
        effective={**_SERVER, **config.flags},
        argv=("python3", "-m", "sglang.launch_server", *(f"--{k}={v}" for k, v in config.flags.items())),
        host=HOST,
        server_id=f"{rng.getrandbits(64):016x}",
        started_at=began,
        ended_at=began + datetime.timedelta(seconds=LAUNCH_S - 5 + 4 * rng.random()),
        phases=tuple(
            PhaseTime(name=name, duration_s=20 * rng.random()) for name in ("check", "start", "benchmark")
        ),
        proof=Proof(gpu_mib_before=(4,) * 8, port_free_before=True, nonce=f"{nth:016x}", stop_signals=("TERM",)),
        provenance=_PROVENANCE,
        failure=failure,
    )
    return made if failure else made.model_copy(update=_measured(config, rng, early=number > 0 and nth % 10 == 9))


def _measured(config: ServerConfig, rng: random.Random, *, early: bool) -> dict[str, object]:
    value = speed(config) * rng.lognormvariate(0, 0.01)
    rates = {name: value * rng.lognormvariate(0, 0.02) for name in PROMPTS}
    other = {name: rng.random() < 0.1 for name in PROMPTS}
    passes = range(1 if early else 2)
    return {
        "metrics": {
            "output_throughput": value,
            "num_verify_steps": 1000.0,
            **({"accept_length": accept_length(config)} if _steps(config) else {}),
            **{name: value * rng.random() for name in _METRICS},
        },
        "accepted_per_position": tuple(round(1000 * 0.7 ** (n + 1)) for n in range(_steps(config))),
        "accept_definition": "spec_accept_length",
        "repeat_throughputs": tuple(value * rng.lognormvariate(0, 0.004) for _ in passes),
        "prompt_throughputs": rates,
        "first_pass_throughputs": {name: rate * rng.lognormvariate(0, 0.004) for name, rate in rates.items()},
        "class_throughputs": {"code": value, "prose": value},
        "outputs": {
            f"{name}#{n}": marks(_TEXTS[name][:150] + (config.key() if other[name] else "") + _TEXTS[name][150:])
            for n in passes
            for name in PROMPTS
        },
        "estimated": "stopped after 2 of 5 prompts: 38 % slower than trial 4; estimated from these"
        if early
        else "",
        "gpu": GpuWindow(
            num_samples=90, gpus=tuple(range(8)), power_w=tuple(400 + rng.random() for _ in range(8))
        ),
    }


def failure_of(number: int) -> Failure | None:
    """One trial in twenty-five runs out of memory, one in a hundred fails by our own fault."""
    evidence = tuple(f"E {i} torch.OutOfMemoryError: CUDA out of memory" for i in range(8))
    if number % 100 == 50:
        return Failure(kind=FailureKind.BENCHMARK_FAILED, message="no answer within 120 s", evidence=evidence)
    if number % 25 == 7:
        return Failure(kind=FailureKind.OUT_OF_MEMORY, message="the server ran out of memory", evidence=evidence)
    return None


def _steps(config: ServerConfig) -> int:
    steps = config.flags.get("speculative_num_steps", 0)
    return steps if isinstance(steps, int) else 0


def accept_length(config: ServerConfig) -> float:
    """Drafts are accepted with 70 % each."""
    return 1 + sum(0.7 ** (n + 1) for n in range(_steps(config)))


def speed(config: ServerConfig) -> float:
    """Tokens per second: what is accepted over what a step costs; each further flag costs some percent."""
    slow = 1.4 if config.flags.get("disable_cuda_graph") is True else 1.0
    interval = config.flags.get("schedule_conservativeness", 1.0)
    assert isinstance(interval, float)
    slow *= 1 + 0.02 * abs(interval - 1.1)
    tokens = config.flags.get("speculative_num_draft_tokens", 1)
    assert isinstance(tokens, int)
    return 1000 * accept_length(config) / (10 * slow * (1 + 0.1 * _steps(config) + 0.01 * tokens))
