"""How the GPUs of a host are right now: errors of the hardware, heat, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launchers.gpu_sample import THROTTLING
from sweeper.doctor.cards import remapped, sample
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, warning
from sweeper.doctor.links import FAR, NO_PEER, UNKNOWN_PEER, links
from sweeper.nights.health import fatal_xids

_HOT_C = 80.0
"""An idle GPU that is as hot as this is not cooled."""

_MENDED: Mapping[str, str] = {
    "CNS": "switch off ACS and the IOMMU in the firmware",
    "TNS": "choose GPUs below one switch or processor: host.gpus=[...]",
    "DR": "remove what forbids it from the driver's options (NVreg_RegistryDwords in /etc/modprobe.d)",
}
"""What lets GPUs reach one another, by why they do not; nothing helps where the GPU itself cannot."""


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
    kinds = links(ctx.cards.all("topology"), ctx.spec.host.gpus)
    told = ", ".join(f"{kind} ({_pairs(count)})" for kind, count in kinds.most_common(6))
    if far := next((where for kind, where in FAR.items() if kind in kinds), ""):
        yield warning(
            f"between GPUs: {told}: some traffic goes {far}",
            "choose GPUs of one NUMA node if they suffice: host.gpus=[...]",
        )
    elif told:
        yield ok(f"between GPUs: {told}")
    yield from _peers(links(ctx.cards.all("peers"), ctx.spec.host.gpus))


def _peers(kinds: Mapping[str, int]) -> Iterator[Said]:
    """Whether each GPU can read the others' memory itself."""
    if none := {kind: count for kind, count in kinds.items() if kind in NO_PEER}:
        why = ", ".join(f"{_pairs(count)} {kind} ({NO_PEER[kind]})" for kind, count in none.items())
        mended = [_MENDED[kind] for kind in none if kind in _MENDED]
        yield warning(
            f"no direct access between GPUs: {why}; all-reduces go through the host's memory",
            ", or ".join([*mended, "measure with it: NCCL_P2P_DISABLE=1"]),
        )
    elif UNKNOWN_PEER in kinds:
        yield warning(f"the driver does not say whether {_pairs(kinds[UNKNOWN_PEER])} of GPUs have direct access")
    elif kinds:
        yield ok("direct access between all of them")


def _pairs(count: int) -> str:
    return f"{count} pair{'' if count == 1 else 's'}"


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
