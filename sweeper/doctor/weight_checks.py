"""The files of weights: whole, readable, and not too large for the GPUs and the host's memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from launchers.looking import Told
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, setting, warning
from sweeper.doctor.host_checks import memory_of
from sweeper.text import plain

_GIB = 1024.0**3
_MIB = 1024.0**2
_LEAST_WEIGHTS = 1024
"""A shard of fewer bytes is a pointer of git-lfs, or a download that was cut short."""

_SHARE_OF_INDEX = 0.98  # of the size that the index tells; the rest may be counted otherwise
_ROOM = 0.9  # of a GPU's memory: beyond it there is hardly any left for the cache of keys and values
_UNFINISHED = (".incomplete", ".aria2")
_FILE = re.compile(r"(\d{1,18}) (.{1,300})")
_NUMBER = re.compile(r"\d{1,18}")


def weights_are_whole(ctx: Context) -> Iterator[Said]:
    """Every shard that the index names is there, as large as it should be."""
    for path, told in ctx.weights.items():
        yield from _weights(plain(path, 160), told)


def _weights(path: str, told: Told) -> Iterator[Said]:
    fix = "download it anew; `huggingface-cli download` goes on where it was cut short"
    kinds = told.all("kind")
    if "closed" in kinds:
        yield setting(f"{path} may not be read by this user", "on the host: chmod -R a+rX on it")
        return
    sizes = {found[2]: int(found[1]) for line in told.all("file") if (found := _FILE.fullmatch(line))}
    hidden = [plain(name, 60) for name in told.all("hidden")]
    missing = sorted((set(told.all("shard")) - sizes.keys()) | set(told.all("dangling")))
    small = sorted(
        n
        for n, size in sizes.items()
        if size < _LEAST_WEIGHTS and n != "config.json" and not n.endswith(_UNFINISHED)
    )
    unfinished = [name for name in sizes if name.endswith(_UNFINISHED)]
    weights = {n: size for n, size in sizes.items() if n != "config.json" and n not in unfinished}
    mistakes = [
        (hidden, "cannot be read by this user", "on the host: chmod a+r on it"),
        (missing, "of its index not there", fix),
        (
            small,
            "smaller than any weights: pointers of git-lfs, or cut short",
            "git lfs pull, or download it anew",
        ),
    ]
    for names, what, how in mistakes:
        if names:
            yield error(f"{path}: {len(names)} file{'s' if len(names) > 1 else ''} {what}: {_some(names)}", how)
    total = int(told.first("total")) if _NUMBER.fullmatch(told.first("total")) else 0
    size = sum(weights.values())
    if any(names for names, *_ in mistakes):
        return
    if not weights:
        named = bool(told.all("total"))
        said = f"{path}: no file of weights"
        yield (
            warning(f"{said} is there, and its index names none", fix) if named else error(f"{said} is there", fix)
        )
    elif told.all("shard") and size < _SHARE_OF_INDEX * total:
        yield error(f"{path}: {size / _GIB:.1f} GiB of weights, its index says {total / _GIB:.1f}", fix)
    elif unfinished:
        yield warning(f"{path}: a download is unfinished: {_some(unfinished)}", fix)
    else:
        yield ok(f"{path}: {len(weights)} file{'s' if len(weights) > 1 else ''}, {size / _GIB:.1f} GiB")


def gpus_hold_it(ctx: Context) -> Iterator[Said]:
    """Weights of the model and its largest draft, shared by the GPUs, against the memory of one."""
    look = ctx.gpus if ctx.uses_gpus else None
    if look is None or not look.reading.gpus or not ctx.num_gpus:
        return
    nodes = 1 + len(ctx.spec.host.nodes)
    model, draft = _sizes(ctx)
    each, room = (
        (model + draft) / (ctx.num_gpus * nodes),
        _MIB * min(g.memory_total_mib for g in look.reading.gpus),
    )
    text = f"{each / _GIB:.1f} GiB of weights on each of {ctx.num_gpus * nodes} GPUs of {room / _GIB:.1f} GiB"
    if each > room:
        yield error(text, "more GPUs (tp_size), or weights of lower precision")
    elif each > _ROOM * room:
        yield warning(
            f"{text}: little is left for keys and values", "more GPUs (tp_size), or weights of lower precision"
        )
    elif each:
        yield ok(text)


def memory_holds_it(ctx: Context) -> Iterator[Said]:
    """The page cache: weights that fit into it are read from the disk once, else at each restart."""
    memory, (model, draft) = memory_of(ctx.look), _sizes(ctx)
    room = memory.get("ceiling", memory.get("MemTotal", 0.0))
    if not model or not room:
        return
    text = f"{(model + draft) / _GIB:.1f} GiB of weights, {room / _GIB:.1f} GiB of memory"
    if model + draft > room:
        yield warning(
            f"{text}: each restart reads them from the disk",
            f"a larger limits.start_s than {ctx.spec.limits.start_s:g} if the disk is slow; a faster disk",
        )
    else:
        yield ok(f"{text}: after the first start they come from the page cache")
    slow = sorted(
        {plain(told.first("disk"), 20) for told in ctx.weights.values()} & {"nfs", "nfs4", "cifs", "fuse", "9p"}
    )
    if slow:
        yield warning(
            f"weights lie on {', '.join(slow)}: starts depend on the network", "copy them to a local disk"
        )


def _sizes(ctx: Context) -> tuple[float, float]:
    """Bytes of the model and of the largest draft."""
    sizes = {path: _size(told) for path, told in ctx.weights.items()}
    model = sizes.get(ctx.model[0], 0.0)
    return model, max((size for path, size in sizes.items() if path != ctx.model[0]), default=0.0)


def _size(told: Told) -> float:
    """As large as its files or, where these are not weights, as its index says."""
    files = [found for line in told.all("file") if (found := _FILE.fullmatch(line))]
    total = told.first("total")
    told_bytes = float(total) if _NUMBER.fullmatch(total) else 0.0
    return max(told_bytes, sum(float(f[1]) for f in files if f[2] != "config.json"))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(plain(name, 80) for name in names[:3]) + more


WEIGHT_CHECKS: tuple[Check[Context], ...] = (
    Check("weights", Place.MODEL, "are all shards there and whole", weights_are_whole, ("model",)),
    Check("gpu_fit", Place.MODEL, "do the weights fit into the GPUs", gpus_hold_it, ("gpus", "model")),
    Check(
        "page_cache", Place.MODEL, "do the weights stay in memory between restarts", memory_holds_it, ("model",)
    ),
)
