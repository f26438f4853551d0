"""The GPUs of a host: as many as are needed, alike, free, healthy, and as fast as they can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from launchers.gpus import GpuLook, holders
from sweeper.doctor.cards import cuda_version, policies
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, setting, warning
from sweeper.facts import missing_gpus
from sweeper.fitting import too_few_gpus
from sweeper.text import plain


def gpus_answer(ctx: Context) -> Iterator[Said]:
    """nvidia-smi is there and tells of every watched GPU."""
    if not ctx.uses_gpus:
        yield ok(f"{ctx.engine.name} uses none of them here")
        return
    look = ctx.gpus
    if look is None:
        yield warning(
            "there is no nvidia-smi: idle GPUs cannot be waited for, nor their clocks watched",
            "put it into the PATH of the login, or say host.watch_gpus=false",
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
    if not ctx.sees_gpus:
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
    if (look := ctx.gpus) is None:
        return
    is_free = True
    for gpu in look.reading.gpus:
        alone = replace(look, reading=replace(look.reading, gpus=(gpu,)))
        for line in holders(alone, ctx.spec.host.gpu_idle_mib):
            is_free = False
            yield _held(plain(line, 600), ctx, is_ours=_is_ours(alone))
    if is_free:
        yield ok(f"at most host.gpu_idle_mib = {ctx.spec.host.gpu_idle_mib} MiB in use on each")


def _held(line: str, ctx: Context, *, is_ours: bool) -> Said:
    """How bad it is that somebody holds a GPU: a run stops its own leftovers, and a server that it may replace."""
    port = ctx.spec.host.replace_server
    if is_ours:
        return warning(line, "of an earlier sweep: the next run stops it; now: specsweep stop")
    if port is not None:
        return warning(line, f"if it is the server on port {port}, the run stops it; else end it")
    return error(line, "end these processes, or leave these GPUs out: host.gpus=[...]")


def _is_ours(look: GpuLook) -> bool:
    """Whether all that is seen on this one GPU is of servers of ours."""
    mine = [each.pid for each in look.reading.processes if each.gpu_uuid == look.reading.gpus[0].uuid]
    return bool(mine) and all(pid in look.tenants and look.tenants[pid].server_id for pid in mine)


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
    elif ctx.sees_gpus:
        yield ok("no MIG mode")


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
    if not ctx.sees_gpus:
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
    Check("gpu_software", Place.GPUS, "driver, CUDA and NCCL fit together", gpus_software, ("gpus", "engine")),
)
