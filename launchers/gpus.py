"""What nvidia-smi says of a host's GPUs: their memory, and which processes use it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """One GPU. Memory in MiB (nvidia-smi's own unit)."""

    index: int
    name: str
    uuid: str
    memory_used_mib: int
    memory_total_mib: int


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory of the GPU `gpu_uuid`; `memory_mib` is None where the driver does not tell."""

    gpu_uuid: str
    pid: int
    name: str
    memory_mib: int | None


@dataclass(frozen=True)
class GpuReading:
    """One look at all GPUs of a host."""

    gpus: tuple[Gpu, ...]
    processes: tuple[GpuProcess, ...] = ()
