"""Samples of GPUs as a test needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from launchers.gpu_sample import GpuHolder, GpuSample, GpuState

BUSY = GpuState(
    node=0,
    index=0,
    memory_used_mib=30500,
    listed_mib=30000,
    utilization_pct=97,
    sm_clock_mhz=1980,
    max_sm_clock_mhz=1980,
    memory_clock_mhz=3201,
    temperature_c=61,
    power_w=400,
    power_limit_w=700,
    reasons=(),
)
IDLE = replace(BUSY, utilization_pct=0, sm_clock_mhz=345, temperature_c=35, power_w=80, reasons=("gpu_idle",))
UNTOLD = GpuState(0, 0, None, None, None, None, None, None, None, None, None, None)


def sample(*gpus: GpuState, holders: Sequence[GpuHolder] = ()) -> GpuSample:
    """These GPUs, numbered from 0."""
    return GpuSample(tuple(replace(gpu, index=index) for index, gpu in enumerate(gpus)), tuple(holders))


def reasons(*words: str) -> GpuState:
    return replace(BUSY, reasons=words)


def clock(mhz: float) -> GpuState:
    return replace(BUSY, sm_clock_mhz=mhz)


def holder(pid: int, index: int = 0, mib: int = 30000, *, ours: bool | None = False, name: str = "x") -> GpuHolder:
    """A process on a GPU; not of the server unless told."""
    return GpuHolder(0, index, f"GPU-{index}", pid, mib, ours, name, f"pid {pid}: {name}")
