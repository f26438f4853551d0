"""What a load that was sent from the host amounts to, and when its requests arrive. Pure."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence

from sweeper.engines.base import Counters
from sweeper.errors import FailureKind, TrialError
from sweeper.measuring.figures import percentile_99
from sweeper.measuring.host_load import Arrivals, LoadReport
from sweeper.measuring.load import Load
from sweeper.measuring.load_wire import Exchange
from sweeper.workload_spec import Prompt, WorkloadSpec

CPU_DOUBT_PCT = 70.0
"""A client of one thread that uses so much of its core is late for what arrives, and may limit the load."""

LAG_DOUBT_MS = 50.0
"""Requests that are sent so much too late (99th percentile) did not arrive the way they were meant to."""


def arrivals_of(workload: WorkloadSpec, number: int, count: int) -> Arrivals:
    """When the requests of pass `number` are sent: a Poisson process that is the same in every launch."""
    if workload.request_rate is None:
        return Arrivals(workload.concurrency)
    draw = random.Random(f"{workload.seed} {number}")
    gaps = (draw.expovariate(workload.request_rate) for _ in range(count - 1))
    return Arrivals(workload.concurrency, tuple(itertools.accumulate(gaps, initial=0.0)))


def wall_s(exchanges: Sequence[Exchange]) -> float:
    """Seconds from the first request sent to the last byte of any answer."""
    began_ms = min(exchange.sent_ms for exchange in exchanges)
    return (max(exchange.sent_ms + exchange.e2e_latency_ms for exchange in exchanges) - began_ms) / 1000


def require_answers(prompts: Sequence[Prompt], exchanges: Sequence[Exchange]) -> None:
    """Raises TrialError when any request failed: how many, and how the first one did."""
    failed = [(prompt, e) for prompt, e in zip(prompts, exchanges, strict=True) if e.error]
    if not failed:
        return
    # The first by time: what failed later may have failed of that.
    prompt, first = min(failed, key=lambda pair: (pair[1].sent_ms + pair[1].e2e_latency_ms, pair[0].id))
    kind = FailureKind.SERVER_HANG if any(e.hung for _, e in failed) else FailureKind.BENCHMARK_FAILED
    message = (
        f"{len(failed)} of {len(exchanges)} requests failed, of them first prompt {prompt.id!r}: {first.error}"
    )
    raise TrialError(kind, message, tuple(dict.fromkeys(e.error for _, e in failed))[:5])


def counted(growth: Counters) -> dict[str, float]:
    """What became of the drafts, from the server's counters alone."""
    found = {
        "num_verify_steps": growth.num_drafts,
        "num_drafted_tokens": growth.num_draft_tokens,
        "num_accepted_tokens": growth.num_accepted_tokens,
    }
    known = {name: float(value) for name, value in found.items() if value is not None}
    if growth.num_drafts and growth.num_accepted_tokens is not None:
        known["accept_length"] = 1 + growth.num_accepted_tokens / growth.num_drafts
    if growth.num_draft_tokens and growth.num_accepted_tokens is not None:
        known["accept_rate"] = growth.num_accepted_tokens / growth.num_draft_tokens
    return known


def summed(growths: Sequence[Counters]) -> Counters:
    """All together; what any of them lacks is unknown."""

    def total(values: Sequence[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    rows = itertools.zip_longest(*(growth.accepted_per_position for growth in growths), fillvalue=0)
    return Counters(
        num_drafts=total([growth.num_drafts for growth in growths]),
        num_draft_tokens=total([growth.num_draft_tokens for growth in growths]),
        num_accepted_tokens=total([growth.num_accepted_tokens for growth in growths]),
        accepted_per_position=tuple(sum(row) for row in rows),
    )


def client_metrics(reports: Sequence[LoadReport], workload: WorkloadSpec) -> dict[str, float]:
    """What the client on the host cost, and how late it was."""
    spent_s, whole_s = sum(r.cpu_s for r in reports), sum(r.wall_s for r in reports)
    found = {"client_cpu_pct": 100 * spent_s / whole_s} if whole_s else {}
    if workload.request_rate is not None:
        found["client_lag_ms"] = percentile_99([e.late_ms for report in reports for e in report.exchanges])
    return found


def client_doubts(metrics: Mapping[str, float]) -> tuple[str, ...]:
    """Whether the client on the host may be what was measured."""
    doubts = []
    if (cpu_pct := metrics.get("client_cpu_pct", 0.0)) > CPU_DOUBT_PCT:
        doubts.append(
            f"the load's own client used {cpu_pct:.0f} % of a core: it may be what limits the throughput "
            "(lower the concurrency)"
        )
    if (lag_ms := metrics.get("client_lag_ms", 0.0)) > LAG_DOUBT_MS:
        doubts.append(
            f"requests were sent up to {lag_ms:,.0f} ms (99th percentile) after they were due: the client was "
            "busy, or as many as `concurrency` allows were under way"
        )
    return tuple(doubts)


def places_doubt(load: Load) -> str:
    """Whether there are too few prompts for as many requests under way as were asked for; else empty."""
    asked, there = load.workload.concurrency, len(load.passes[0])
    if there >= asked:
        return ""
    return f"at most {there} requests can be under way, not {asked}: there are no more prompts, nor fresh prefixes"
