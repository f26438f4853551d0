"""One workload's measurement, put together from all that was seen of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sweeper.engines.base import Counters
from sweeper.measuring.doubts import passes_doubt, resent_doubt, server_doubt
from sweeper.measuring.figures import (
    accept_definition,
    accepted_per_position,
    group_throughputs,
    metrics_of,
    repeat_throughputs,
)
from sweeper.measuring.results import Answered
from sweeper.measuring.stopping import Estimate
from sweeper.records import Measurement, RequestResult
from sweeper.text_marks import marks

MAX_OUTPUTS = 200
"""So many texts of a launch are kept for comparison, about 80 characters each."""


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
    `greedy`: the texts are determined, so that they can be compared. `cross_checked`: the server's own times mean
    the same as the client's.
    """

    measured: Sequence[Answered]
    duration_s: float
    num_prompts: int
    warmup: Warmup = Warmup()
    growth: Counters = field(default_factory=Counters)
    walls_s: Sequence[float] = ()
    doubts: tuple[str, ...] = ()
    greedy: bool = False
    cross_checked: bool = True


def measurement_of(seen: Observed, estimate: Estimate | None = None, objective_metric: str = "") -> Measurement:
    """The measurement. With an estimate, that is the value of `objective_metric`, and all else as measured."""
    requests = tuple(answered.result for answered in seen.measured)
    warmups = tuple(answered.result for answered in seen.warmup.answered)
    metrics = metrics_of(requests, seen.walls_s, [gap for answered in seen.measured for gap in answered.gaps_ms])
    metrics |= {"benchmark_s": seen.duration_s, "num_repeats": len(requests) / seen.num_prompts}
    if seen.walls_s:
        metrics["num_under_way"] = sum(r.e2e_latency_ms for r in requests) / 1000 / sum(seen.walls_s)
    if warmups:
        metrics |= {"warmup_s": seen.warmup.duration_s, "num_warmup_requests": len(warmups)}
    if estimate:
        metrics[objective_metric] = estimate.value
    whole = len(requests) >= seen.num_prompts
    server = server_doubt(requests) if seen.cross_checked else ""
    doubts = (seen.warmup.doubt, *seen.doubts, server, resent_doubt(requests), passes_doubt(requests))
    return Measurement(
        requests=requests,
        warmups=warmups,
        metrics=metrics,
        repeat_throughputs=repeat_throughputs(requests, seen.walls_s) if whole else (),
        prompt_throughputs=group_throughputs(requests, lambda r: r.prompt_id),
        first_pass_throughputs=group_throughputs([r for r in requests if r.repeat == 0], lambda r: r.prompt_id),
        class_throughputs=group_throughputs(requests, lambda r: r.prompt_class),
        accepted_per_position=accepted_per_position(requests) or seen.growth.accepted_per_position,
        accept_definition=accept_definition(requests),
        outputs=_outputs(requests) if seen.greedy else {},
        estimated=estimate.text if estimate else "",
        doubts=tuple(doubt for doubt in doubts if doubt),
    )


def _outputs(requests: Sequence[RequestResult]) -> dict[str, str]:
    """What was written, as marks that can be compared; each text of a pass has its own place."""
    return {f"{r.prompt_id}#{r.repeat}": marks(r.output_text) for r in requests[:MAX_OUTPUTS]}
