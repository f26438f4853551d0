"""What of a model, a workload and a host cannot fit together, as can be seen before any launch. Pure."""

from __future__ import annotations

from sweeper.engines.base import Engine, HostFacts
from sweeper.engines.serving import Placement
from sweeper.spec import ServerConfig, SweepSpec

CHARACTERS_PER_TOKEN = 2.0
"""Few tokens have fewer in any language that is written with letters: prompts are estimated from above by it."""


def gpus_needed(spec: SweepSpec, engine: Engine) -> int:
    """How many GPUs a server takes on each host; 0: unknown or none."""
    placement = Placement(
        command=spec.engine.command,
        model_path=spec.model.path,
        port=spec.host.port_low,
        nonce="",
        num_nodes=1 + len(spec.host.nodes),
        node_address=spec.host.node_address,
    )
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    return engine.export(base, placement, HostFacts()).num_gpus


def too_few_gpus(spec: SweepSpec, needed: int, usable: int, host: str) -> str:
    """Why the parallel groups do not fit on one host; empty when they do, or when nobody knows.

    `needed` and `usable`: GPUs on that host, 0 where it is not known.
    """
    if not 0 < usable < needed:
        return ""
    which = f"host.gpus has {usable}" if spec.host.gpus else f"host {host} has {usable}"
    return f"engine.flags: the server needs {needed} GPUs on each host, {which}"


def context_mistakes(spec: SweepSpec, engine: Engine, facts: HostFacts) -> list[str]:
    """A line for each workload whose answers alone are longer than a request may be."""
    limit = engine.context_tokens(spec.engine.flags, facts)
    return [
        f"{_path(spec, number)}.max_tokens: {workload.max_tokens} do not fit into the context of {limit} tokens"
        for number, workload in enumerate(spec.workloads)
        if limit is not None and workload.max_tokens >= limit
    ]


def tight_contexts(spec: SweepSpec, engine: Engine, facts: HostFacts) -> list[str]:
    """A line for each workload whose longest prompt may not leave room for its answer."""
    limit = engine.context_tokens(spec.engine.flags, facts)
    lines = []
    for number, workload in enumerate(spec.workloads):
        longest = max(len(prompt.text) for prompt in workload.prompts)
        most = workload.max_tokens + longest / CHARACTERS_PER_TOKEN
        if limit is not None and workload.max_tokens < limit < most:
            lines.append(
                f"{_path(spec, number)}: a prompt of {longest:,} characters and an answer of {workload.max_tokens}"
                f" tokens may be more than the context of {limit} tokens"
            )
    return lines


def _path(spec: SweepSpec, number: int) -> str:
    return "workload" if number == 0 else f"more_workloads.{spec.workloads[number].name}"
