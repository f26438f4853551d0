"""The GPUs of a host: as many as are needed, alike, free, healthy, and as fast as they can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launchers.gpu_sample import THROTTLING
from launchers.gpus import holders
from sweeper.doctor.cards import cuda_version, links, policies, remapped, sample
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, setting, warning
from sweeper.facts import missing_gpus
from sweeper.fitting import too_few_gpus
from sweeper.health import fatal_xids
from sweeper.text import plain

_HOT_C = 80.0
"""An idle GPU that is as hot as this is not cooled."""

_FAR = ("SYS", "NODE")
_NO_PEER = {
    "NS": "not supported",
    "CNS": "the chipset does not",
    "GNS": "the GPU does not",
    "TNS": "not with this topology",
}


def gpus_answer(ctx: Context) -> Iterator[Said]:
    """nvidia-smi is there and tells of every watched GPU."""
    if not ctx.uses_gpus:
        yield ok(f"{ctx.engine.name} uses none of them here")
        return
    look = ctx.gpus
    if look is None:
        yield error(
            "there is no nvidia-smi",
            "install NVIDIA's driver and its tools, or put them into the PATH of the login",
        )
    elif look.problems:
        yield error(
            f"nvidia-smi: {'; '.join(map(plain, look.problems))}",
            "reset or reboot the host; nvidia-smi must answer",
        )
    elif not look.reading.gpus:
        yield warning(
            "no GPU tells its memory (MIG, or memory shared with the host): idle GPUs cannot be waited for"
        )
    else:
        first = look.reading.gpus[0]
        yield ok(f"{len(look.reading.gpus)} x {plain(first.name, 80)}, {first.memory_total_mib} MiB")


def gpus_suffice(ctx: Context) -> Iterator[Said]:
    """As many as the parallel groups need."""
    if not ctx.uses_gpus:
        return
    if wrong := missing_gpus(ctx.spec, ctx.gpu_names, ctx.commands):
        yield from (setting(line, "name GPUs that exist: host.gpus=[0,1]") for line in wrong)
        return
    usable = len(ctx.spec.host.gpus) or len(ctx.gpu_names)
    if mistake := too_few_gpus(ctx.spec, ctx.num_gpus, usable, ctx.host):
        yield setting(mistake, "lower the parallel size, or free more GPUs for it")
    else:
        yield ok(f"the server takes {ctx.num_gpus or 'an unknown number'} of {usable}")


def gpus_alike(ctx: Context) -> Iterator[Said]:
    """The same model everywhere: the slowest sets the pace."""
    if look := ctx.gpus:
        names = {plain(gpu.name, 80): gpu.index for gpu in reversed(look.reading.gpus)}
        if len(names) > 1:
            told = ", ".join(f"{name} (GPU {index})" for name, index in names.items())
            yield warning(
                f"they differ: {told}; the slowest sets the pace", "use GPUs of one kind: host.gpus=[...]"
            )
        elif names:
            yield ok("all of one kind")


def gpus_free(ctx: Context) -> Iterator[Said]:
    """Nobody holds memory of them: a launch waits for that, and then gives up."""
    if look := ctx.gpus:
        held = holders(look, ctx.spec.host.gpu_idle_mib)
        fix = "end these processes, or leave these GPUs out: host.gpus=[...]"
        yield from (error(plain(line, 600), fix) for line in held)
        if not held:
            yield ok(f"at most host.gpu_idle_mib = {ctx.spec.host.gpu_idle_mib} MiB in use on each")


def gpus_persist(ctx: Context) -> Iterator[Said]:
    """Persistence mode: without it the driver forgets an idle GPU, and wakes it for seconds at each start."""
    found = _set(ctx, "persistence_mode")
    if off := [index for index, word in found.items() if word.lower() == "disabled"]:
        yield warning(
            f"persistence mode is off on {_gpus(off)}: starts take longer, clocks settle late",
            "on the host: sudo nvidia-smi -pm 1",
        )
    elif found:
        yield ok("persistence mode is on")


def gpus_policy(ctx: Context) -> Iterator[Said]:
    """Power limit, application clocks, ECC mode and compute mode: alike, and none that keeps servers away."""
    told = []
    for field, name in (
        ("power.limit", "power limit"),
        ("clocks.applications.graphics", "application clock"),
        ("ecc.mode.current", "ECC"),
        ("compute_mode", "compute mode"),
    ):
        values = _set(ctx, field)
        kinds = sorted(set(values.values()))
        if len(kinds) > 1:
            where = "; ".join(f"{kind}: {_gpus([i for i, v in values.items() if v == kind])}" for kind in kinds)
            yield warning(f"{name} differs: {where}", "set all alike with nvidia-smi -pl, -ac, -e or -c")
        elif kinds:
            told.append(f"{name} {kinds[0]}")
        if shut := [index for index, value in values.items() if name == "compute mode" and value == "Prohibited"]:
            yield error(
                f"compute mode Prohibited on {_gpus(shut)}: no server can use it",
                "on the host: sudo nvidia-smi -c DEFAULT",
            )
    if told:
        yield ok(", ".join(told))


def gpus_whole(ctx: Context) -> Iterator[Said]:
    """MIG: a slice has a part of the memory, and NCCL does not join slices."""
    cut = [index for index, word in _set(ctx, "mig.mode.current").items() if word.lower() == "enabled"]
    if cut and ctx.num_gpus > 1:
        yield error(
            f"{_gpus(cut)} in MIG mode: a server over {ctx.num_gpus} GPUs cannot join slices",
            "on the host: sudo nvidia-smi -mig 0, or other GPUs: host.gpus=[...]",
        )
    elif cut:
        yield warning(
            f"{_gpus(cut)} in MIG mode: a server gets one slice, whose memory is not told",
            "give the slice by CUDA_VISIBLE_DEVICES in engine.env",
        )
    elif ctx.uses_gpus and ctx.cards.lines:
        yield ok("no MIG mode")


def gpus_healthy(ctx: Context) -> Iterator[Said]:
    """ECC errors, rows of memory to be remapped, fatal Xids in the kernel's log."""
    if not ctx.uses_gpus:
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
    if not ctx.uses_gpus:
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
    if ctx.num_gpus < 2 or not ctx.uses_gpus:
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


def gpus_software(ctx: Context) -> Iterator[Said]:
    """Driver, CUDA and NCCL, and that the driver runs the CUDA that the server is built for."""
    driver = ", ".join(sorted(set(_set(ctx, "driver_version").values())))
    newest, built = cuda_version(ctx.cards), ctx.build.get("cuda", "")
    told = [
        ("driver", driver),
        ("its CUDA", newest),
        ("CUDA of the server", built),
        ("NCCL", ctx.build.get("nccl", "")),
    ]
    text = ", ".join(f"{name} {value}" for name, value in told if value)
    if newest and built and _major(built) > _major(newest):
        yield error(
            f"{text}: the driver is too old for that CUDA",
            "update the driver, or install a server built for an older CUDA",
        )
    elif text:
        yield ok(text)


def _major(version: str) -> int:
    word = version.partition(".")[0]
    return int(word) if word.isdecimal() and len(word) < 4 else 0


def _set(ctx: Context, field: str) -> Mapping[int, str]:
    """How each GPU is set; nothing for one that does not tell."""
    if not ctx.uses_gpus:
        return {}
    found = {index: row[field] for index, row in policies(ctx.cards, ctx.spec.host.gpus).items()}
    return {index: word for index, word in found.items() if word and not word.startswith("[") and word != "N/A"}


def _gpus(indices: list[int]) -> str:
    return f"GPU{'s' if len(indices) > 1 else ''} {', '.join(map(str, sorted(indices)))}"


GPU_CHECKS: tuple[Check[Context], ...] = (
    Check("gpus", Place.GPUS, "does nvidia-smi answer, and tell of every watched GPU", gpus_answer, ("session",)),
    Check("gpu_count", Place.GPUS, "are there as many as the parallel groups need", gpus_suffice, ("gpus",)),
    Check("gpu_kinds", Place.GPUS, "are they of one kind", gpus_alike, ("gpus",)),
    Check("gpu_memory", Place.GPUS, "is their memory free; if not, who holds it", gpus_free, ("gpus",)),
    Check("persistence", Place.GPUS, "is persistence mode on", gpus_persist, ("gpus",)),
    Check(
        "gpu_policy",
        Place.GPUS,
        "power limit, clocks, ECC and compute mode: alike, and open to servers",
        gpus_policy,
        ("gpus",),
    ),
    Check("mig", Place.GPUS, "are they whole", gpus_whole, ("gpus",)),
    Check("gpu_errors", Place.GPUS, "ECC errors, rows to be remapped, fatal Xids", gpus_healthy, ("gpus",)),
    Check("gpu_heat", Place.GPUS, "temperature, and what slows them down", gpus_cool, ("gpus",)),
    Check(
        "topology",
        Place.GPUS,
        "links and direct access between them, where a server takes several",
        gpus_linked,
        ("gpus",),
    ),
    Check("gpu_software", Place.GPUS, "driver, CUDA and NCCL fit together", gpus_software, ("gpus", "engine")),
)
