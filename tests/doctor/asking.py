"""A context whose host is what a test says it is, and checks asked one by one."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from launchers.gpus import Gpu, GpuLook, GpuProcess, GpuReading, Tenant
from launchers.host import HostLauncher, HostSettings
from launchers.looking import Told
from launchers.shell import LocalShell
from sweeper.config import load
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Level, Said
from sweeper.doctor.table import CHECKS
from sweeper.engines.registry import engine_for
from sweeper.spec import SweepSpec

SGLANG = (
    "preset=sglang_any",
    "host.ssh.destination=gpu1",
    "model.path=/models/m",
    "space.speculative_draft_model_path=/models/d",
)
LLAMACPP = ("model=gguf", "model.path=/m.gguf")


@functools.cache
def composed(*overrides: str) -> SweepSpec:
    return load(overrides).spec


def context(*overrides: str, base: Sequence[str] = SGLANG, **known: Any) -> Context:
    """A context of these settings in which the things named in `known` were looked at already."""
    spec = composed(*base, *overrides)
    launcher = HostLauncher(LocalShell("gpu1"), HostSettings("gpu1", state_dir=spec.host.state_dir))
    made = Context(spec, engine_for(spec.engine.name), launcher)
    made.__dict__.update(known)
    return made


def look(*used_mib: int, problems: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> GpuLook:
    """GPUs with so much of their memory in use; one process holds what is on the first."""
    gpus = tuple(
        Gpu(n, names[n] if names else "NVIDIA H200", f"GPU-{n}", used, 143771) for n, used in enumerate(used_mib)
    )
    mine = GpuProcess("GPU-0", 4711, "python", 70_000)
    tenants = {4711: Tenant("", "pid 4711: python train.py")}
    return GpuLook(GpuReading(gpus, (mine,) if used_mib and used_mib[0] > 2000 else ()), tenants, problems)


def gpu_context(*overrides: str, **known: Any) -> Context:
    """A context of a host with nvidia-smi."""
    return context(*overrides, **{"gpus": look(4, 4), **known})


def told(**lines: str | Iterable[str]) -> Told:
    """What a host told, by word."""
    return Told({word: (text,) if isinstance(text, str) else tuple(text) for word, text in lines.items()})


def said(name: str, ctx: Context) -> list[Said]:
    """What the check of that name says."""
    return list(next(check for check in CHECKS if check.name == name).look(ctx))


def worst(name: str, ctx: Context) -> Level:
    """The worst level of what it says; ok where it says nothing."""
    order = (Level.ERROR, Level.WARNING, Level.OK)
    levels = {each.level for each in said(name, ctx)} or {Level.OK}
    return next(level for level in order if level in levels)


def text(name: str, ctx: Context) -> str:
    """All that it says, reasons and fixes."""
    return "\n".join(f"{each.level}: {each.reason} | {each.fix}" for each in said(name, ctx))
