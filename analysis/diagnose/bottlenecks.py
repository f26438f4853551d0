"""What decoding waits for: the CPU that launches kernels, the links between GPUs, their memory or arithmetic."""

from __future__ import annotations

from analysis.diagnose.compared import best_of_each, evidence_of, graphs, setting_text, settings
from analysis.diagnose.context import Context, numbers, pct_text, percent
from analysis.diagnose.finding import Evidence, Finding, Severity
from analysis.diagnose.step_time import baseline_ms, same_baseline, step_model

LAUNCH_BOUND_PCT = 15.0
"""What a CUDA graph saves is the time to launch kernels one by one: 25 to 60 % on published single-stream runs.
Above this the GPU waits for the CPU."""

COMMUNICATION_BOUND_PCT = 3.0
"""A variable of NCCL changes nothing but collectives: if it moves throughput by so much, they are a fair part of
a step (published PCIe hosts: 5 to 10 %)."""

CHEAP_TOKEN = 0.02
"""Of a step without drafts. When a further verified token costs surely less, reading the weights decides, not
computing: one pass over them serves all tokens."""

DEAR_TOKEN = 0.05
"""Above it, computing (or experts woken up by other tokens) decides."""


def launch_bound(context: Context) -> Finding | None:
    """Whether decoding without graphs waits for the CPU."""
    found = graphs(context)
    if found is None or not found.is_clean or percent(found.log_ratio).low < LAUNCH_BOUND_PCT:
        return None
    return Finding(
        "launch_bound",
        Severity.NOTE,
        "Without CUDA graphs this server is launch-bound",
        f"Graphs bring {pct_text(percent(found.log_ratio))}. They save nothing but the launching of kernels, so "
        f"without "
        "them the GPU waits for the CPU. Whatever runs outside of a graph (a batch size that was not captured, "
        "a backend "
        "without graphs for its drafts) pays that price.",
        (evidence_of("with CUDA graphs against without", found),),
        "Capture every batch size that you serve (cuda_graph_max_bs), and prefer backends that draft inside "
        "graphs.",
    )


def communication_bound(context: Context) -> Finding | None:
    """Whether collectives are a fair part of a step."""
    found = best_of_each(context, [name for name in settings(context) if name.startswith("env.NCCL_")])
    telling = [one for one in found if one.is_clean and percent(one.log_ratio).low >= COMMUNICATION_BOUND_PCT]
    if not telling:
        return None
    best = max(telling, key=lambda one: one.log_ratio.value)
    return Finding(
        "communication_bound",
        Severity.LIMIT,
        "Communication between the GPUs is a fair part of each step",
        f"{setting_text(best)} alone brings {pct_text(percent(best.log_ratio))}. NCCL's variables change "
        f"nothing but "
        "collectives: what they save was communication.",
        tuple(evidence_of(setting_text(one), one) for one in telling),
        "Try further protocols, channels and P2P levels (probe.nccl=true times them without a server), fewer "
        "GPUs per "
        "server, or a host with NVLink.",
    )


def memory_bound(context: Context) -> Finding | None:
    """Whether verifying more tokens is nearly free, or dear."""
    model = step_model(context)
    baseline = same_baseline(context, model.steps[0].point) if model else None
    if model is None or not model.has_tokens or baseline is None:
        return None
    share = model.per_token.scaled(1 / baseline_ms(context, baseline))
    told = f"{100 * share.value:.1f} % ({100 * share.low:.1f} to {100 * share.high:.1f})"
    evidence = (
        Evidence(
            "a further verified token, of a step without drafts", told, numbers([s.point for s in model.steps])
        ),
    )
    if share.high < CHEAP_TOKEN:
        return Finding(
            "memory_bound",
            Severity.NOTE,
            "Decoding is memory-bound: verifying further draft tokens is nearly free",
            f"A further token costs {told} of a step without drafts: the weights are read once for all of them.",
            evidence,
            "Use wider trees (topk 2 to 4 with more draft tokens): what they add in acceptance costs almost "
            "nothing.",
        )
    if share.low > DEAR_TOKEN:
        return Finding(
            "compute_bound",
            Severity.NOTE,
            "Verifying draft tokens is dear here",
            f"A further token costs {told} of a step without drafts. Wide trees do not pay at this load.",
            evidence,
            "Prefer chains (topk 1) with few steps; with fewer requests under way tokens would be cheaper.",
        )
    return None
