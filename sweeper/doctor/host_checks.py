"""The host itself: its state folder, what runs there, ports, limits, memory and disk."""

from __future__ import annotations

import re
from collections.abc import Iterator

from launchers.errors import HostDirty
from launchers.looking import Told
from launchers.masking import masked_words
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, warning
from sweeper.text import plain

_GIB_IN_KIB = 1024.0**2
_GIB = 1024.0**3
_LEAST_FILES = 4096
"""Open files: a server has some for each request, worker and shard; 1,024 is the default of many systems."""

_LEAST_SHM_GIB = 1.0
"""NCCL and the workers of a tensor-parallel group share memory there; Docker gives 64 MiB."""

_LIMIT = re.compile(r"Max (open files|locked memory|processes)\s+(unlimited|\d{1,20})\s")
_MEMORY = re.compile(r"(\w+):\s+(\d{1,15}) kB")
_SERVER = re.compile(r"(\d{1,9}) (\d{1,9}) (\S{1,100}) (.*)")


def tools_are_there(ctx: Context) -> Iterator[Said]:
    """The few programs that a host must have."""
    missing = [plain(name, 20) for name in ctx.look.all("missing")]
    needed = [
        name for name in missing if name in ("setsid", "awk", "sed", "tail") or (name == "flock" and ctx.way)
    ]
    if needed:
        yield error(f"missing: {', '.join(needed)}", "install util-linux (setsid, flock), gawk or mawk, coreutils")
    elif missing:
        yield warning(f"missing: {', '.join(missing)}", "install coreutils and util-linux")
    else:
        yield ok("/bin/sh, setsid, flock, awk")


def state_is_writable(ctx: Context) -> Iterator[Said]:
    """The state folder exists and can be written to, or can be made: by its permissions, nothing is written."""
    look, folder = ctx.look, ctx.spec.host.state_dir
    told, place = look.all("state"), plain(look.first("place"), 200)
    if "link" in told:
        yield error(f"{folder}/host.lock is a symbolic link", "remove it")
    if "nofolder" in told:
        yield error(f"{place} is no folder", "choose another one: host.state_dir=...")
    elif "readonly" in told:
        yield error(f"{place} cannot be written to", "chown it to the user that logs in, or host.state_dir=...")
    elif look.first("inodes") == "0":
        yield error(f"no inode is left on the disk of {place}", "delete files there")
    elif "link" not in told:
        yield ok(f"{folder} {'will be made' if 'absent' in told else 'can be written to'}")


def nobody_holds_it(ctx: Context) -> Iterator[Said]:
    """No other specsweep process holds the host."""
    state, _, holder = ctx.look.first("lock").partition(" ")
    if state == "held":
        yield error(
            f"held by another specsweep: {plain(holder) or 'unknown'}", "wait for its end, or end that process"
        )
    else:
        yield ok("no other specsweep holds the host")


def nothing_was_left(ctx: Context) -> Iterator[Said]:
    """Servers of earlier sweeps: leftovers, one left serving, one that was stopped and not started again."""
    is_held = ctx.look.first("lock").startswith("held")
    left = () if is_held else ctx.launcher.leftovers()  # else they are that process' own
    kept, pending = ctx.standing.kept(), ctx.standing.pending()
    for identity in left:
        yield warning(
            f"server {identity[0]} of an earlier sweep still runs", "the next run stops it; now: specsweep stop"
        )
    for server in kept:
        yield warning(
            f"port {server.handle.port}: a server that a sweep left serving ({plain(server.note, 120)})",
            "the next run stops it; now: specsweep stop",
        )
    for port in pending:
        yield warning(
            f"the server on port {port}, which a sweep stopped, was not started again", "specsweep stop --restore"
        )
    if not (left or kept or pending):
        yield ok("nothing of an earlier sweep runs")


def port_is_free(ctx: Context) -> Iterator[Said]:
    """A port of the range for the next server."""
    low, high = ctx.spec.host.port_low, ctx.spec.host.port_high
    try:
        yield ok(f"port {ctx.launcher.free_port()} of {low} to {high} is free")
    except HostDirty as dirty:
        text = "; ".join(_command(line) for line in dirty.holders)
        if {int(identity[-1]) for identity in ctx.launcher.leftovers()} & set(range(low, high + 1)):
            yield warning(f"all taken: {text}", "the next run stops servers of earlier sweeps among them")
            return
        yield error(
            f"ports {low} to {high} are all taken: {text}",
            "end these, or choose others: host.port_low, host.port_high",
        )


def nobody_else_serves(ctx: Context) -> Iterator[Said]:
    """Other inference servers: they take memory, clocks and bandwidth from what is measured."""
    found = [match.groups() for line in ctx.look.all("server")[:200] if (match := _SERVER.fullmatch(line))]
    pids = {pid for pid, *_ in found}
    heads = [row for row in found if row[1] not in pids and row[2] in "-?"]
    if not heads:
        yield ok("no other inference server runs")
    replaced = ctx.spec.host.replace_server
    for *_, text in heads[:20]:
        fix = "end it for the night, or let the sweep do that: host.replace_server=PORT"
        told = _command(text)
        if replaced is not None and re.search(rf"\b{replaced}\b", text):
            yield ok(f"will be replaced: {told}")
        else:
            yield warning(f"another inference server runs: {told}", fix)


def limits_suffice(ctx: Context) -> Iterator[Said]:
    """Open files, shared memory, locked memory, as a server that is started there gets them."""
    limits = {found[1]: found[2] for line in ctx.look.all("limit") if (found := _LIMIT.match(line))}
    files, shm = limits.get("open files", ""), ctx.look.numbers("shm")
    is_fine = True
    if files.isdecimal() and int(files) < _LEAST_FILES:
        is_fine = False
        yield warning(
            f"open files: {files}",
            f"raise `ulimit -n` to {_LEAST_FILES} or more (limits.conf, systemd: LimitNOFILE)",
        )
    if ctx.num_gpus > 1 and len(shm) == 2 and shm[0] < _LEAST_SHM_GIB * _GIB_IN_KIB:
        is_fine = False
        yield warning(
            f"/dev/shm has {shm[0] / 1024:.0f} MiB: NCCL needs more",
            "in a container: --shm-size=16g or --ipc=host",
        )
    locked = limits.get("locked memory", "")
    if ctx.num_gpus > 1 and ctx.spec.host.nodes and locked.isdecimal() and int(locked) < _GIB:
        is_fine = False
        yield warning(f"locked memory: {int(locked) // 1024} KiB: InfiniBand needs more", "ulimit -l unlimited")
    if is_fine:
        yield ok(
            f"open files {files or '?'}" + (f", /dev/shm {shm[0] / _GIB_IN_KIB:.1f} GiB" if len(shm) == 2 else "")
        )


def memory_suffices(ctx: Context) -> Iterator[Said]:
    """Memory that is free, and a ceiling of a container below it."""
    found = memory_of(ctx.look)
    if "MemTotal" not in found:
        yield warning("the host does not tell its memory")
        return
    total, free = found["MemTotal"] / _GIB, found.get("MemAvailable", 0.0) / _GIB
    text = f"{free:.1f} of {total:.1f} GiB are available"
    if free < 0.1 * total:
        yield warning(text, "end what uses it: a server that swaps measures the disk")
    else:
        yield ok(text)
    if "ceiling" in found:
        yield ok(f"a cgroup limits this login to {found['ceiling'] / _GIB:.1f} GiB")


def cpus_suffice(ctx: Context) -> Iterator[Said]:
    """Processors of this login, and how busy they are."""
    mine, all_of_them = _count(ctx.look.first("cpuset")), _count(ctx.look.first("cpus"))
    load = ctx.look.first("load").split(" ")[0]
    busy = float(load) if re.fullmatch(r"\d{1,6}\.\d{1,3}", load) else 0.0
    text = f"{mine or '?'} processors, load {busy:.1f}"
    if mine and busy > max(1.0, 0.5 * mine):
        yield warning(f"{text}: the host is busy", "measure when it is quiet: starts and speeds will scatter")
    else:
        yield ok(text)
    if 0 < mine < all_of_them:
        yield warning(
            f"a cpuset leaves {mine} of {all_of_them} processors",
            "give the login or container all processors near the GPUs",
        )


def disk_suffices(ctx: Context) -> Iterator[Said]:
    """Free disk where logs and records go; less than `limits.free_gib` stops a sweep."""
    told, least = ctx.look.numbers("disk"), ctx.spec.limits.free_gib
    free = told[1] / _GIB_IN_KIB if len(told) == 2 else None
    if free is None:
        yield warning(f"the disk of {ctx.spec.host.state_dir} does not tell how much is free")
    elif free < least:
        yield error(
            f"{free:.1f} GiB are free for {ctx.spec.host.state_dir}",
            f"free {least:g} GiB, or lower limits.free_gib",
        )
    else:
        yield ok(f"{free:.1f} GiB are free")


def memory_of(look: Told) -> dict[str, float]:
    """Bytes by the names of /proc/meminfo, and `ceiling`: the lowest limit of a cgroup below the total."""
    found = {m[1]: 1024.0 * int(m[2]) for line in look.all("memory") if (m := _MEMORY.fullmatch(line))}
    ceilings = [int(word) for word in look.all("ceiling") if word.isdecimal() and len(word) < 20]
    lowest = min(ceilings, default=None)
    if lowest is not None and lowest < found.get("MemTotal", 0.0):
        found["ceiling"] = float(lowest)
    return found


def _count(text: str) -> int:
    """How many processors `0-3,8` names; 0 when it makes no sense."""
    parts = [re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part) for part in text.split(",")]
    return sum(int(p[2] or p[1]) - int(p[1]) + 1 for p in parts if p) if all(parts) else 0


def _command(text: str) -> str:
    """A command line of somebody else, without what may be secret in it."""
    return plain(" ".join(masked_words(text.split())), 160)


HOST_CHECKS: tuple[Check[Context], ...] = (
    Check("tools", Place.HOST, "are setsid, flock and awk there", tools_are_there, ("session",)),
    Check(
        "state_dir",
        Place.HOST,
        "can the state folder be written to or made (by its permissions)",
        state_is_writable,
        ("session",),
    ),
    Check("lock", Place.HOST, "does another specsweep process hold the host", nobody_holds_it, ("session",)),
    Check("leftovers", Place.HOST, "do servers of earlier sweeps still run", nothing_was_left, ("session",)),
    Check("port", Place.HOST, "is a port of the range free; if not, who has them", port_is_free, ("session",)),
    Check("servers", Place.HOST, "do other inference servers run", nobody_else_serves, ("session",)),
    Check("limits", Place.HOST, "open files, /dev/shm, locked memory", limits_suffice, ("session",)),
    Check("memory", Place.HOST, "is memory available, and does a cgroup limit it", memory_suffices, ("session",)),
    Check(
        "processors",
        Place.HOST,
        "is the host quiet, and does a cpuset leave all processors",
        cpus_suffice,
        ("session",),
    ),
    Check("disk", Place.HOST, "is there disk for logs (limits.free_gib)", disk_suffices, ("session",)),
)
