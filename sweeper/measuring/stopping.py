"""When enough has been measured: a launch without hope ends early, a close one goes on. Pure.

Launches are compared by prompt: prompts differ far more from one another than servers do.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.measuring.figures import group_throughputs, repeat_throughputs
from sweeper.records import Reference, RequestResult
from sweeper.statistics.stats import t_quantile
from sweeper.workload_spec import WorkloadSpec

ESTIMABLE = frozenset({"output_throughput", "mean_prompt_throughput"})
"""Objectives that a few prompts say something about."""

HOPELESS_CONFIDENCE = 0.99
"""One-sided, for each look. With the margin, simulated launches that equal all others were stopped in 0.0 % of
cases at 1.5 % of noise between starts, in 6 % at 3 %: the best so far is the luckiest of all. One that was 3 %
faster than all others was stopped in 0.8 % of nights at 3 %."""

HOPELESS_MARGIN = 0.02
"""So far below the reference must even the best that can be hoped for lie."""

MIN_PROMPTS = 2
"""One slow request (another process on the host) is no slow server."""

SPREAD_DEGREES = 4.0
"""How many observations the spread between prompts that the reference knows is worth: one pass of five prompts.

The launch's own prompts are added: a configuration that suits some prompts and not others spreads more.
"""

CLOSE_CONFIDENCE = 0.95
"""Two-sided: a launch that differs from the reference by more than launches do is not measured more precisely."""


@dataclass(frozen=True)
class SoFar:
    """What has been measured of one workload. `walls_s`: seconds of each pass, where requests overlap."""

    requests: Sequence[RequestResult]
    elapsed_s: float
    walls_s: Sequence[float] = ()


@dataclass(frozen=True)
class Estimate:
    """The objective, estimated from a few prompts, and how that came, in words."""

    value: float
    text: str


@dataclass(frozen=True)
class _Gap:
    """The logarithm of the ratio to the reference over the whole workload; one standard error, its degrees."""

    log_ratio: float
    error: float
    degrees: float
    num_prompts: int
    num_all: int

    def bound(self, probability: float) -> float:
        """The ratio is below this with `probability`."""
        return math.exp(self.log_ratio + t_quantile(probability, self.degrees) * self.error)


def hopeless(
    requests: Sequence[RequestResult], workload: WorkloadSpec, reference: Reference | None, objective_metric: str
) -> Estimate | None:
    """An estimate of the objective when these requests of the first pass leave no hope; else None: go on.

    No hope: even the upper end of the 99 % prediction for the whole workload lies below the reference by a margin.
    """
    if reference is None or not workload.stop_hopeless or objective_metric not in ESTIMABLE:
        return None
    gap = _gap(requests, workload, reference, objective_metric)
    if gap is None or gap.num_prompts < min(MIN_PROMPTS, gap.num_all):
        return None
    if gap.bound(HOPELESS_CONFIDENCE) >= 1 - HOPELESS_MARGIN:
        return None
    ratio = math.exp(gap.log_ratio)
    high, low = (100 * (1 - gap.bound(p)) for p in (0.025, 0.975))
    text = (
        f"stopped after {gap.num_prompts} of {gap.num_all} prompts: {100 * (1 - ratio):.0f} % (95 % interval "
        f"{low:.0f} to {high:.0f} %) slower than trial {reference.trial_number}; the throughput is estimated from "
        "these prompts"
    )
    return Estimate(reference.value * ratio, text)


def another_pass(so_far: SoFar, workload: WorkloadSpec, reference: Reference | None = None) -> bool:
    """Whether one more pass over the prompts is worth its time; at least one has been made.

    `repeats` are always made unless the time is up. As many again, up to `max_repeats`, while the passes' mean is
    not known to `precision_pct` percent (one standard error) and the launch is so close to the reference that this
    matters. These begin in time, or not at all; once begun all are made, even when the time is up meanwhile:
    launches of whole cycles can be compared.
    """
    throughputs = repeat_throughputs(so_far.requests, so_far.walls_s)
    made, in_time = len(throughputs), so_far.elapsed_s < workload.max_measure_s
    if made % workload.repeats:
        return in_time or made > workload.repeats  # half a further cycle would be other work
    if not in_time or made + workload.repeats > workload.max_repeats:
        return False
    error = _error_of_mean(so_far, throughputs)
    if error is not None and 100 * error <= workload.precision_pct:
        return False
    first = [r for r in so_far.requests if r.repeat == 0]  # which the reference knows
    gap = _gap(first, workload, reference, "output_throughput") if reference else None
    return gap is None or gap.bound((1 - CLOSE_CONFIDENCE) / 2) <= 1 <= gap.bound((1 + CLOSE_CONFIDENCE) / 2)


def missing_passes(made: int, workload: WorkloadSpec, remembers: str) -> str:
    """Why fewer passes were made than were asked for, else empty. `remembers`: `Engine.remembers`' words."""
    if made >= workload.repeats:
        return ""
    why = remembers or f"max_measure_s, {workload.max_measure_s:g} s, was over"
    return f"{made} instead of {workload.repeats} passes: {why}"


def _error_of_mean(so_far: SoFar, throughputs: Sequence[float]) -> float | None:
    """One standard error of the mean over the passes, as a share of it; None for a single pass.

    Paired by prompt where requests follow one another: two passes of five prompts are five comparisons. Whole
    passes may differ besides (the host's clock): the larger of the two errors counts.
    """
    if len(throughputs) < 2:
        return None
    whole = statistics.stdev(math.log(value) for value in throughputs) / math.sqrt(len(throughputs))
    return whole if so_far.walls_s else max(whole, _paired_error(so_far.requests))


def _paired_error(requests: Sequence[RequestResult]) -> float:
    """The same from what each prompt's requests differ by among themselves."""
    by_prompt: dict[str, list[float]] = {}
    for request in requests:
        by_prompt.setdefault(request.prompt_id, []).append(math.log(request.output_throughput))
    squares = sum(statistics.pvariance(logs) * len(logs) for logs in by_prompt.values())
    degrees = len(requests) - len(by_prompt)
    return math.sqrt(squares / degrees / len(requests))


def _gap(
    requests: Sequence[RequestResult], workload: WorkloadSpec, reference: Reference, objective_metric: str
) -> _Gap | None:
    """How the launch stands against the reference, over the prompts that both have; None when there is none.

    The error has two parts. The prompts spread: those not measured yet may have another ratio, and those that are
    would not give quite the same one again, so that this part does not vanish with the last prompt. And the
    server's next start is not this one, nor is the reference's. How much each of them is, few observations say:
    together they have Satterthwaite's degrees.
    """
    theirs = reference.prompt_throughputs
    known = [r for r in requests if theirs.get(r.prompt_id, 0.0) > 0]
    num_all = sum(theirs.get(prompt.id, 0.0) > 0 for prompt in workload.prompts)
    if not known or not num_all:
        return None
    ours = group_throughputs(known, lambda r: r.prompt_id)
    logs = [math.log(rate / theirs[prompt]) for prompt, rate in ours.items()]
    spread_degrees = SPREAD_DEGREES + len(logs) - 1
    own = statistics.pvariance(logs) * len(logs)
    spread_squared = (SPREAD_DEGREES * (reference.prompt_spread_pct / 100) ** 2 + own) / spread_degrees
    prompts, launches = spread_squared / len(logs), 2 * (reference.launch_noise_pct / 100) ** 2
    doubt = prompts**2 / spread_degrees + launches**2 / reference.launch_noise_degrees
    return _Gap(
        log_ratio=math.log(_ratio(known, ours, reference, objective_metric)),
        error=math.sqrt(prompts + launches),
        degrees=(prompts + launches) ** 2 / doubt if doubt else math.inf,
        num_prompts=len(logs),
        num_all=num_all,
    )


def _ratio(
    known: Sequence[RequestResult], ours: dict[str, float], reference: Reference, objective_metric: str
) -> float:
    """The paired ratio: what these prompts give of the objective, over what they give under the reference."""
    theirs = reference.prompt_throughputs
    if objective_metric == "mean_prompt_throughput":
        return sum(ours.values()) / sum(theirs[prompt] for prompt in ours)
    # All tokens over all time: the reference would have taken so long for the same tokens.
    their_s = sum(r.num_output_tokens / theirs[r.prompt_id] for r in known)
    return their_s / sum(r.e2e_latency_ms / 1000 for r in known)
