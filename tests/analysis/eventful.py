"""A night in which everything happened that a report has a word for."""

from __future__ import annotations

from sweeper.errors import FailureKind
from sweeper.records import GpuWindow, LaunchRecord, Purpose, TrialRecord, TrialState, WorkloadResult
from sweeper.text_marks import marks
from tests.analysis.builders import (
    OBJECTIVE,
    PROMPTS,
    Night,
    failed,
    measured,
    new_night,
    ngram,
    plain_config,
    trial,
)
from tests.analysis.studies import changed

EARLY = (
    "stopped after 1 of 2 prompts: 38 % (95 % interval 33 to 43 %) slower than trial 1; the throughput is "
    "estimated from these prompts"
)
WARMING = "later passes are faster by {} % than the first: a server still warming up, or a busy host"
PROVENANCE = {
    "engine_version": "0.5.15",
    "host": "gpu1",
    "workload": "chat",
    "gpu_driver": "570.86.15",
    "specsweep_version": "0.1.0",
}
WINDOW = GpuWindow(
    num_samples=30,
    gpus=(0, 1),
    sm_clock_mhz=(1965.0, 1980.0),
    lowest_sm_clock_mhz=(1410.0, 1980.0),
    temperature_c=(61.2, 58.4),
    highest_temperature_c=(83.0, 64.0),
    power_w=(612.4, 598.0),
)


def rich(night: Night, value: float, purpose: Purpose = Purpose.SEARCH, **changes: object) -> LaunchRecord:
    """A launch with two workloads, GPU samples, and what the client cost."""
    launch = measured(night, value, purpose, drafted=value > 43)
    more = {"num_warmup_requests": 5.0, "warmup_s": 4.2, "num_repeats": 2.0, "server_gap_pct": 0.31}
    busy = WorkloadResult(
        metrics={
            OBJECTIVE: 6 * value + 20,
            "request_throughput": value / 10,
            "ttft_p99_ms": 910.0,
            "client_cpu_pct": 12.5,
            "client_lag_ms": 3.2,
        }
    )
    outputs = {
        f"{prompt}#0": marks(f"The text that {prompt} asks for. {'It goes on. ' * 20}") for prompt in PROMPTS
    }
    settings: dict[str, object] = {
        "outputs": outputs,
        "metrics": {**launch.metrics, **more},
        "class_throughputs": {"prose": value * 0.9, "code": value * 1.1},
        "others": {"busy": busy},
        "gpu": WINDOW,
        "provenance": PROVENANCE,
    }
    return changed(launch, **(settings | changes))


def eventful_night() -> list[TrialRecord]:
    """Controls and rechecks, an early stop, doubts, a lossy configuration, another driver in the beginning."""
    night = new_night()
    old = {**PROVENANCE, "gpu_driver": "550.54"}
    hot = WINDOW.model_copy(
        update={"throttled": {"hw_thermal_slowdown": 0.4, "sw_power_cap": 0.97}, "others": ("pid 7 (python)",)}
    )
    rounding = ("cache_type_k q4_0: the baseline has f16; keys are rounded",)
    launches: dict[int, list[LaunchRecord]] = {
        0: [rich(night, 41.8, Purpose.BASELINE, provenance=old), rich(night, 41.9, Purpose.CONTROL)],
        1: [rich(night, 51.5), rich(night, 51.2, Purpose.RECHECK, doubts=(WARMING.format(4),))],
        2: [rich(night, 31.9, estimated=EARLY, repeat_throughputs=(), prompt_throughputs={"notice": 33.0})],
        3: [failed(night, FailureKind.OUT_OF_MEMORY, "the server ran out of memory", ["E oom: 3.1 GiB asked"])],
        4: [rich(night, 52.0, lossy=rounding, gpu=hot, doubts=(WARMING.format(7),))],
        5: [rich(night, 44.0, provenance=old)],
    }
    launches[4][0] = changed(launches[4][0], outputs={f"{p}#0": marks(f"Other text of {p}") for p in PROMPTS})
    launches[0].append(rich(night, 41.6, Purpose.CONTROL))
    for values in ((41.7, 51.3), (41.9, 51.6)):
        for number, value in enumerate(values):
            launches[number].append(rich(night, value, Purpose.CONFIRM))
    configs = [
        plain_config(),
        ngram(3, 4),
        ngram(3, 7),
        ngram(4, 31),
        ngram(3, 5, cache_type_k="q4_0"),
        ngram(3, 6),
    ]
    states = {3: TrialState.INFEASIBLE}
    return [
        trial(number, config, launches[number], states.get(number, TrialState.COMPLETE))
        for number, config in enumerate(configs)
    ]
