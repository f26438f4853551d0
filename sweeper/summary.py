"""One workload's measurement, put together from all that was seen of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sweeper.doubts import doubts_of
from sweeper.engines.base import Counters
from sweeper.figures import (
    accept_definition,
    accepted_per_position,
    group_throughputs,
    metrics_of,
    repeat_throughputs,
)
from sweeper.records import Measurement
from sweeper.results import Answered
from sweeper.stopping import Estimate


@dataclass(frozen=True)
class Warmup:
    """What was sent before measuring. `doubt`: why the server may not have been warm; else empty."""

    answered: Sequence[Answered] = ()
    duration_s: float = 0.0
    doubt: str = ""


@dataclass(frozen=True)
class Observed:
    """What was seen of one workload.

    `num_prompts`: in a whole pass. `growth`: of the server's counters over all measured requests. `walls_s`: the
    wall-clock seconds of each pass, where requests overlap. `doubts`: what is known beside the requests.
    """

    measured: Sequence[Answered]
    duration_s: float
    num_prompts: int
    warmup: Warmup = Warmup()
    growth: Counters = field(default_factory=Counters)
    walls_s: Sequence[float] = ()
    doubts: tuple[str, ...] = ()


def measurement_of(seen: Observed, estimate: Estimate | None = None, objective_metric: str = "") -> Measurement:
    """The measurement. With an estimate, that is the value of `objective_metric`, and all else as measured."""
    requests = tuple(answered.result for answered in seen.measured)
    warmups = tuple(answered.result for answered in seen.warmup.answered)
    metrics = metrics_of(requests, seen.walls_s, [gap for answered in seen.measured for gap in answered.gaps_ms])
    metrics |= {"benchmark_s": seen.duration_s, "num_repeats": len(requests) / seen.num_prompts}
    if warmups:
        metrics |= {"warmup_s": seen.warmup.duration_s, "num_warmup_requests": len(warmups)}
    if estimate:
        metrics[objective_metric] = estimate.value
    whole = len(requests) >= seen.num_prompts
    doubts = (seen.warmup.doubt, *seen.doubts, *doubts_of(requests))
    return Measurement(
        requests=requests,
        warmups=warmups,
        metrics=metrics,
        repeat_throughputs=repeat_throughputs(requests, seen.walls_s) if whole else (),
        prompt_throughputs=group_throughputs(requests, lambda r: r.prompt_id),
        class_throughputs=group_throughputs(requests, lambda r: r.prompt_class),
        accepted_per_position=accepted_per_position(requests) or seen.growth.accepted_per_position,
        accept_definition=accept_definition(requests),
        estimated=estimate.text if estimate else "",
        doubts=tuple(doubt for doubt in doubts if doubt),
    )
