"""Where a number comes from, beyond the settings: what is written into every record, and read for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version

from sweeper.engines.base import HostFacts
from sweeper.spec import SweepSpec, digest
from sweeper.text import plain
from sweeper.workload_spec import WorkloadSpec

GPU_POLICY = (
    # What nvidia-smi calls it, and what it is called here; an administrator may change each of them at any time.
    ("persistence_mode", "persistence"),
    ("power.limit", "power limit"),
    ("clocks.applications.graphics", "application clock"),
    ("clocks.applications.memory", "memory clock"),
    ("ecc.mode.current", "ECC"),
    ("mig.mode.current", "MIG"),
    ("compute_mode", "compute mode"),
)
"""Locked clocks (nvidia-smi -lgc) are not among them: nvidia-smi does not tell them; the clocks measured do."""

GPU_FIELDS = ",".join(("index", "driver_version", *(field for field, _ in GPU_POLICY)))
"""For `nvidia-smi --query-gpu=FIELDS --format=csv,noheader`."""

_NOT_TOLD = re.compile(r"\[.*\]|N/A|", re.IGNORECASE)
_SNAPSHOT = re.compile(r"/snapshots/([0-9a-f]{40})/*\Z")


def provenance_of(spec: SweepSpec, facts: HostFacts, host: str) -> dict[str, str]:
    """What every record of a launch says about where its numbers come from; what is not known is left out.

    Numbers of different provenance are not compared.
    """
    return {
        "engine": spec.engine.name,
        "engine_version": facts.engine_version,
        "model": spec.model.name,
        "model_fingerprint": facts.model_fingerprint,
        "host": host,
        "workload": spec.workload.name,
        **{_named("prompts", workload, spec): prompts_digest(workload) for workload in spec.workloads},
        **({"gpus": ", ".join(facts.gpu_names)} if facts.gpu_names else {}),
        **dict(sorted(facts.build.items())),
        "specsweep_version": version("specsweep"),
    }


def _named(name: str, workload: WorkloadSpec, spec: SweepSpec) -> str:
    return name if workload is spec.workload else f"{name} of {workload.name}"


def prompts_digest(workload: WorkloadSpec) -> str:
    """How many prompts a workload has, and twelve hex digits that are equal for equal ones in the same order."""
    texts = [[prompt.id, prompt.text, prompt.prompt_class] for prompt in workload.prompts]
    return f"{len(texts)} prompts, sha256 {digest(texts)[:12]}"


def revision_of(path: str) -> str:
    """The commit of a model that lies in a Hugging Face cache; empty for any other path."""
    found = _SNAPSHOT.search(path)
    return found[1] if found else ""


def gpu_build(output: str, gpus: Sequence[int]) -> dict[str, str]:
    """`driver` and `gpu_policy` from nvidia-smi's answer to GPU_FIELDS, of the GPUs in use (empty: all).

    Empty when it makes no sense. GPUs that are set alike are told once.
    """
    names = [name for _, name in GPU_POLICY]
    rows = [[plain(cell, 60) for cell in line.split(",")] for line in output.strip().splitlines()[:1024]]
    if not rows or any(len(row) != 2 + len(names) or not row[0].isdecimal() for row in rows):
        return {}
    used = [row for row in rows if not gpus or int(row[0]) in gpus]
    policies = {row[0]: _policy(names, row[2:]) for row in used}
    distinct = list(dict.fromkeys(policies.values()))
    policy = distinct[0] if len(distinct) == 1 else "; ".join(f"GPU {n}: {text}" for n, text in policies.items())
    driver = ", ".join(dict.fromkeys(row[1] for row in rows if not _NOT_TOLD.fullmatch(row[1])))
    return {name: text for name, text in (("driver", driver), ("gpu_policy", policy)) if text}


def _policy(names: Sequence[str], cells: Sequence[str]) -> str:
    told = [(n, cell) for n, cell in zip(names, cells, strict=True) if not _NOT_TOLD.fullmatch(cell)]
    return ", ".join(f"{name} {cell}" for name, cell in told)
