"""Whether the host was the same all night: cold starts, GPUs that were slowed down, drift."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from analysis.diagnose.context import Context, pct_text, percent
from analysis.diagnose.finding import Evidence, Finding, Severity
from sweeper.deciding.launches import usable
from sweeper.records import LaunchRecord
from sweeper.statistics.least_squares import around

MIN_COLD_PCT = 2.0
"""A first pass this much slower than the later ones was not warm; less is rounding."""

MIN_VALUES = 3
"""Below it a mean has no spread worth the name."""

MAX_SHOWN = 12


def cold_passes(context: Context) -> Finding | None:
    """Whether first passes are slower than later ones: the warm-up was too short."""
    logs: list[float] = []
    trials: set[int] = set()
    for trial in context.trials:
        for launch in trial.measured:
            if len(launch.repeat_throughputs) > 1 and min(launch.repeat_throughputs) > 0:
                first, *later = launch.repeat_throughputs
                logs.append(math.log(first / statistics.fmean(later)))
                trials.add(trial.number)
    return _cold(
        "cold_passes", "First passes", logs, trials, "raise workload.warmup_max_requests, or measure more passes"
    )


def cold_first_launch(context: Context) -> Finding | None:
    """Whether the baseline's first launch is slower than its later ones: the night began cold."""
    baseline = next((trial for trial in context.trials if trial.is_baseline), None)
    values = [n for n in baseline.measured if usable(n, context.objective)] if baseline else []
    if len(values) < MIN_VALUES + 1 or context.drift.significant:
        return None
    values.sort(key=lambda launch: launch.started_at)
    logs = [math.log(launch.metrics[context.objective]) for launch in values]
    later = statistics.fmean(logs[1:])
    variance = max(statistics.variance(logs[1:]), 1e-12) * (1 + 1 / (len(logs) - 1))
    gap = around(logs[0] - later, variance, len(logs) - 2)
    change = percent(gap)
    if change.high > -MIN_COLD_PCT:
        return None
    return Finding(
        "cold_first_launch",
        Severity.WARNING,
        f"The first launch was cold: {pct_text(change)} against the baseline's later ones",
        "The baseline was launched again and again; its first launch is slower than all later ones by more than "
        "they differ.",
        (Evidence("first launch against later ones", pct_text(change), (0,)),),
        "Do not compare with the first launch; on a new host let one launch pass before you begin.",
    )


def _cold(rule: str, what: str, logs: Sequence[float], trials: set[int], step: str) -> Finding | None:
    if len(logs) < MIN_VALUES:
        return None
    variance = max(statistics.variance(logs), 1e-12) / len(logs)
    change = percent(around(statistics.fmean(logs), variance, len(logs) - 1))
    if change.high > -MIN_COLD_PCT:
        return None
    return Finding(
        rule,
        Severity.WARNING,
        f"{what} are slower than the ones after them: {pct_text(change)}",
        "A warm server writes as fast in its first pass as in its last. These numbers have a part of the "
        "warm-up in them.",
        (Evidence("first pass against later ones", pct_text(change), tuple(sorted(trials))[:MAX_SHOWN]),),
        f"To be sure, {step}.",
    )


def throttling(context: Context) -> Finding | None:
    """Whether GPUs were slowed down while launches were measured, and whether that shows."""
    slowed = [n for t in context.trials for n in t.measured if _is_slowed(n)]
    if not slowed:
        return None
    numbers = tuple(sorted({launch.trial_number for launch in slowed}))
    reasons = dict.fromkeys(
        name for launch in slowed for name, share in launch.gpu.throttled.items() if _counts(name, share)
    )
    measured = sum(len(trial.measured) for trial in context.trials)
    leaders = {0, *(point.number for point in context.drafting[:1])} & set(numbers)
    touched = f" Among them are the ones that decide: {', '.join(map(str, sorted(leaders)))}." if leaders else ""
    return Finding(
        "throttling",
        Severity.WARNING if leaders else Severity.NOTE,
        f"GPUs were slowed down in {len(slowed)} of {measured} launches",
        f"nvidia-smi gave {' and '.join(reasons)} as the reason.{touched}",
        tuple(
            Evidence(
                f"launch {n.launch_number}",
                ", ".join(f"{k} {100 * v:.0f} % of the time" for k, v in n.gpu.throttled.items() if _counts(k, v)),
                (n.trial_number,),
            )
            for n in slowed[:MAX_SHOWN]
        ),
        "Look at cooling and power supply, or lock the clocks below the limit (nvidia-smi -lgc), and launch "
        "these again.",
    )


POWER_CAP = "sw_power_cap"
"""How a GPU under full load sets its clocks: no slowdown (launchers/gpu_sample.py)."""

MIN_SHARE = 0.1
"""Of the samples of a launch; a single sample of many is nothing."""


def _counts(name: str, share: float) -> bool:
    return name != POWER_CAP and share >= MIN_SHARE


def _is_slowed(launch: LaunchRecord) -> bool:
    return any(_counts(name, share) for name, share in launch.gpu.throttled.items())


def baseline_drift(context: Context) -> Finding | None:
    """Whether the host became faster or slower."""
    drift = context.drift
    if not drift.significant or drift.pct_per_hour is None:
        return None
    return Finding(
        "baseline_drift",
        Severity.WARNING,
        f"The host drifts: {drift.pct_per_hour:+.2f} % per hour",
        f"{drift.text} The findings here have that taken out; a curve that is not a straight line is not.",
        (Evidence("baseline", f"{drift.num_launches} launches over {drift.hours:.1f} h", (0,)),),
        "Look at GPU temperatures and at who else uses the host; compare only launches of about the same time.",
    )
