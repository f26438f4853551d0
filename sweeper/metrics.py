"""METRICS: every number that specsweep records, with its name, unit and meaning. To add one, add a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One named number. `better` is "higher", "lower" or "" (neither); `minimum` bounds its legal values."""

    name: str
    label: str
    unit: str
    meaning: str
    better: str = ""
    digits: int = 1
    minimum: float = 0.0
    objective: bool = False
    mlflow_alias: str = ""

    def format(self, value: float) -> str:
        """The value as a person reads it, without its unit."""
        return f"{value:,.{self.digits}f}"


_ROWS = (
    Metric(
        "output_throughput",
        "throughput",
        "tok/s",
        "all output tokens over all time, end to end",
        better="higher",
        objective=True,
    ),
    Metric(
        "decode_throughput",
        "decode",
        "tok/s",
        "output tokens after each first one over the time they took",
        better="higher",
        objective=True,
    ),
    Metric(
        "mean_prompt_throughput",
        "mean of prompts",
        "tok/s",
        "mean of the per-request end-to-end rates",
        better="higher",
        objective=True,
    ),
    Metric(
        "score",
        "score",
        "",
        "the weighted geometric mean that the objective asks for",
        better="higher",
        digits=2,
    ),
    Metric("request_throughput", "requests/s", "1/s", "requests per second", better="higher", digits=2),
    Metric("ttft_ms", "TTFT", "ms", "median time to the first token", better="lower"),
    Metric("ttft_p99_ms", "TTFT p99", "ms", "99th percentile of the time to the first token", better="lower"),
    Metric(
        "tpot_ms",
        "TPOT",
        "ms",
        "median time per output token after the first",
        better="lower",
        digits=2,
    ),
    Metric(
        "itl_p99_ms",
        "ITL p99",
        "ms",
        "99th percentile of the gaps between chunks of text",
        better="lower",
        digits=2,
    ),
    Metric("e2e_latency_ms", "latency", "ms", "median time from request to last byte", better="lower"),
    Metric(
        "accept_length",
        "accept_len",
        "tok",
        "tokens kept per verify step, bonus token included",
        better="higher",
        digits=2,
        minimum=1.0,
        mlflow_alias="accept_len",
    ),
    Metric(
        "accept_length_low",
        "accept_len, least",
        "tok",
        "where a source tells only a range of accept_len: its lower end",
        digits=2,
        minimum=1.0,
    ),
    Metric(
        "accept_length_high",
        "accept_len, most",
        "tok",
        "where a source tells only a range of accept_len: its upper end",
        digits=2,
        minimum=1.0,
    ),
    Metric(
        "accept_rate",
        "accept rate",
        "",
        "accepted over drafted tokens; never ranked on: its denominator is the engine's",
        digits=3,
    ),
    Metric(
        "tokens_per_step",
        "tokens/step",
        "tok",
        "output tokens per decode step, steps without drafts included",
        digits=2,
        minimum=1.0,
    ),
    Metric("num_output_tokens", "output tokens", "tok", "output tokens of all measured requests", digits=0),
    Metric("num_drafted_tokens", "drafted", "tok", "draft tokens that were verified", digits=0),
    Metric("num_accepted_tokens", "accepted", "tok", "draft tokens that were kept", digits=0),
    Metric("num_verify_steps", "verify steps", "", "decode steps in which drafts were verified", digits=0),
    Metric("num_requests", "requests", "", "measured requests", digits=0),
    Metric("repeat_spread_pct", "spread", "%", "(highest - lowest) / mean of the repeats' throughput", digits=1),
    Metric("num_warmup_requests", "warm-ups", "", "requests until the speed no longer rose", digits=0),
    Metric("num_repeats", "passes", "", "passes over the prompts", digits=1),
    Metric("num_under_way", "under way", "", "mean number of requests under way at once", digits=1),
    Metric(
        "server_gap_pct",
        "client - server",
        "%",
        "the client's time over the server's own, above it in percent",
        digits=2,
        minimum=-100.0,
    ),
    Metric("client_cpu_pct", "client CPU", "%", "CPU time of the load's own client, of one core", digits=1),
    Metric("client_lag_ms", "client lag", "ms", "99th percentile of how late the client sent a request", digits=1),
    Metric("gpu_sm_clock_mhz", "SM clock", "MHz", "mean over the GPUs, while measuring", digits=0),
    Metric("gpu_temperature_c", "GPU temperature", "°C", "highest of any GPU, while measuring", digits=0),
    Metric("gpu_power_w", "GPU power", "W", "of all watched GPUs together, mean while measuring", digits=0),
    Metric("speedup", "vs baseline", "x", "throughput over the baseline's", better="higher", digits=3),
    Metric("start_s", "start", "s", "launch to ready", better="lower"),
    Metric("warmup_s", "warm-up", "s", "warm-up requests"),
    Metric("benchmark_s", "benchmark", "s", "measured requests"),
    Metric("stop_s", "stop", "s", "stop, verified"),
    Metric("launch_s", "launch", "s", "the whole launch, from the first look at the host to the verified stop"),
    Metric(
        "energy_wh",
        "GPU energy",
        "Wh",
        "mean GPU power while measuring times the whole launch: loading draws less, so it is an upper bound",
    ),
)

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ROWS}


def check_metrics(values: Mapping[str, float]) -> dict[str, float]:
    """`values`, checked: known names, finite, not below their minimum. Absent means not measured.

    Raises ValueError that names the first offender.
    """
    for name, value in values.items():
        if name not in METRICS:
            raise ValueError(f"unknown metric {name!r}; METRICS in sweeper/metrics.py lists the names")
        if not math.isfinite(value) or value < METRICS[name].minimum:
            raise ValueError(f"metric {name} is {value!r}; it must be finite and >= {METRICS[name].minimum}")
    return dict(values)
