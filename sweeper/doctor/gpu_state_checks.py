"""How the GPUs of a host are right now: errors of the hardware, heat, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator

from launchers.gpu_sample import THROTTLING
from sweeper.doctor.cards import links, remapped, sample
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, warning
from sweeper.health import fatal_xids

_HOT_C = 80.0
"""An idle GPU that is as hot as this is not cooled."""

_FAR = ("SYS", "NODE")
_NO_PEER = {
    "NS": "not supported",
    "CNS": "the chipset does not",
    "GNS": "the GPU does not",
    "TNS": "not with this topology",
}


def gpus_healthy(ctx: Context) -> Iterator[Said]:
    """ECC errors, rows of memory to be remapped, fatal Xids in the kernel's log."""
    if not ctx.sees_gpus:
        return
    bad = {index: count for index, count in ctx.health.ecc.items() if count}
    for index, count in bad.items():
        yield warning(
            f"GPU {index}: {count} uncorrected ECC errors since the driver was loaded",
            f"reset it while nothing runs: sudo nvidia-smi -r -i {index}",
        )
    pending, failed = remapped(ctx.cards)
    for uuid in failed:
        yield error(
            f"{uuid}: rows of its memory cannot be remapped",
            "have the GPU replaced; leave it out: host.gpus=[...]",
        )
    for uuid in pending:
        yield warning(f"{uuid}: rows of its memory wait to be remapped", "reset the GPU, or reboot")
    xids = fatal_xids(ctx.health)
    if xids:
        yield warning(
            f"{len(xids)} fatal Xids in the kernel's log, the last: {xids[-1]}",
            "reboot the host if that was not done since; a GPU that does it again is broken",
        )
    if not (bad or failed or pending or xids):
        yield ok("no hardware error is told")


def gpus_cool(ctx: Context) -> Iterator[Said]:
    """Temperature, and what slows a GPU down already now."""
    if not ctx.sees_gpus:
        return
    found = sample(ctx.cards, ctx.spec.host.gpus, ctx.spec.host.gpu_idle_mib)
    is_quiet = True
    for gpu in found.gpus:
        if slowed := sorted(THROTTLING & set(gpu.reasons or ())):
            is_quiet = False
            yield warning(
                f"GPU {gpu.index} is slowed down: {', '.join(slowed)}",
                "look at its cooling and its power supply before measuring",
            )
        limit_c = min(_HOT_C, ctx.spec.limits.gpu_temperature_c or _HOT_C)
        if gpu.temperature_c is not None and gpu.temperature_c > limit_c:
            is_quiet = False
            yield warning(
                f"GPU {gpu.index} has {gpu.temperature_c:.0f} °C", "let it cool down, or look at its cooling"
            )
    temperatures = [gpu.temperature_c for gpu in found.gpus if gpu.temperature_c is not None]
    if is_quiet and temperatures:
        yield ok(f"{min(temperatures):.0f} to {max(temperatures):.0f} °C, nothing slows them down")


def gpus_linked(ctx: Context) -> Iterator[Said]:
    """How the GPUs of a tensor-parallel group reach one another."""
    if ctx.num_gpus < 2 or not ctx.sees_gpus:
        return
    kinds = links(ctx.cards, "topology", ctx.spec.host.gpus)
    told = ", ".join(f"{kind} ({count} pairs)" for kind, count in kinds.most_common(6))
    if any(kind in kinds for kind in _FAR):
        yield warning(
            f"between GPUs: {told}: some traffic crosses the processors' own link",
            "choose GPUs of one socket if they suffice: host.gpus=[...]",
        )
    elif told:
        yield ok(f"between GPUs: {told}")
    peers = links(ctx.cards, "peers", ctx.spec.host.gpus)
    if none := {kind: count for kind, count in peers.items() if kind in _NO_PEER}:
        why = ", ".join(f"{count} pairs {kind} ({_NO_PEER[kind]})" for kind, count in none.items())
        yield warning(
            f"no direct access between GPUs: {why}; all-reduces go through the host's memory",
            "switch off ACS and the IOMMU in the firmware, or measure with it: NCCL_P2P_DISABLE=1",
        )
    elif peers:
        yield ok("direct access between all of them")


GPU_STATE_CHECKS: tuple[Check[Context], ...] = (
    Check("gpu_errors", Place.GPUS, "ECC errors, rows to be remapped, fatal Xids", gpus_healthy, ("gpus",)),
    Check("gpu_heat", Place.GPUS, "temperature, and what slows them down", gpus_cool, ("gpus",)),
    Check(
        "topology",
        Place.GPUS,
        "links and direct access between them, where a server takes several",
        gpus_linked,
        ("gpus",),
    ),
)
