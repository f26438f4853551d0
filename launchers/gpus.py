"""What nvidia-smi says of a host's GPUs, and when they are idle.

A GPU is idle while no more of its memory is used than an allowance, and no process of a server of ours holds any
of it. The allowance is a setting, not a first reading: that may be taken while somebody else's process holds
70 GB. What is below it (the driver's own share, an MPS daemon, a desktop) is there for good, whoever holds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from launchers.clock import Clock
from launchers.errors import HostDirty, HostLost

_LOOK_S = 0.5
_MAX_HOLDERS = 20
_WARNED = "14"  # nvidia-smi's exit code for an answer that is whole, from a board with a corrupt infoROM
_NOT_TOLD = re.compile(r"\[?(N/A|Not Supported|Insufficient Permissions|Not Found)\]?", re.IGNORECASE)
_NUMBER = re.compile(r"(\d{1,15})(?: MiB)?")
_INDEX = re.compile(r"\d{1,15}")  # an index or a pid; Python itself refuses numbers of thousands of digits
_NOT_A_ROW = re.compile(r"warning:|no running", re.IGNORECASE)


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
    """One look at all GPUs of a host.

    A GPU without a memory figure of its own (cut up into MIG instances, or sharing the host's memory) is left out.
    """

    gpus: tuple[Gpu, ...]
    processes: tuple[GpuProcess, ...] = ()


@dataclass(frozen=True)
class Tenant:
    """A process that holds GPU memory, as the host sees it.

    `server_id`: the server of ours that it belongs to, else empty. `description` is empty when the process is not
    visible: it lives in another container.
    """

    server_id: str
    description: str


@dataclass(frozen=True)
class GpuLook:
    """A reading, who holds what in it (by pid), and whatever makes it useless: then nothing is proved."""

    reading: GpuReading
    tenants: Mapping[int, Tenant]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class IdleRule:
    """Which GPUs are watched (empty: all), what may be used of each in MiB, and how long to wait for that."""

    gpus: tuple[int, ...]
    idle_mib: int
    wait_s: float


def wait_until_idle(ask: Callable[[], str | None], rule: IdleRule, host: str, clock: Clock) -> GpuReading | None:
    """Ask until the watched GPUs are idle: that reading, or None where there is no nvidia-smi.

    `ask` gives the answer of the verb `gpus` of supervisor.sh. Raises HostDirty when they are not idle after
    `rule.wait_s` seconds, or at once when nvidia-smi hangs or fails: waiting mends neither.
    """
    deadline_s = clock.monotonic_s() + rule.wait_s
    while (text := ask()) is not None:
        look = read_gpus(text, rule.gpus)
        if look.problems:
            raise HostDirty(f"nvidia-smi on {host}: {'; '.join(look.problems)}", look.problems)
        held = holders(look, rule.idle_mib)
        if not held:
            return look.reading
        left_s = deadline_s - clock.monotonic_s()
        if left_s <= 0:
            what = "; ".join(held)
            limit = f"idle is at most gpu_idle_mib = {rule.idle_mib} MiB"
            raise HostDirty(f"GPU memory on {host} is still held after {rule.wait_s:g} s ({limit}): {what}", held)
        clock.sleep(min(_LOOK_S, left_s))
    return None


def holders(look: GpuLook, idle_mib: int) -> tuple[str, ...]:
    """One line for each GPU that is not idle: its memory and who holds it. Empty: all are."""
    lines = []
    for gpu in look.reading.gpus:
        mine = [process for process in look.reading.processes if process.gpu_uuid == gpu.uuid]
        ours = any(process.pid in look.tenants and look.tenants[process.pid].server_id for process in mine)
        if gpu.memory_used_mib > idle_mib or ours:
            who = ", ".join(_who(process, look.tenants.get(process.pid)) for process in mine[:_MAX_HOLDERS])
            used = f"{gpu.memory_used_mib} of {gpu.memory_total_mib} MiB"
            nobody = "nvidia-smi shows no process of it here (one of another container is not visible)"
            lines.append(f"GPU {gpu.index} ({gpu.name}), {used}: {who or nobody}")
    return tuple(lines)


def _who(process: GpuProcess, tenant: Tenant | None) -> str:
    size = "unknown size" if process.memory_mib is None else f"{process.memory_mib} MiB"
    if tenant is None or not tenant.description:
        return f"pid {process.pid}: {process.name}, {size} (not visible here: in another container, or just ended)"
    owner = f", of specsweep's server {tenant.server_id}" if tenant.server_id else ""
    return f"{tenant.description}, {size}{owner}"


def read_gpus(text: str, watched: tuple[int, ...] = ()) -> GpuLook:
    """The look that the verb `gpus` of supervisor.sh tells in `text`. Raises HostLost when it is not its answer.

    Anything that nvidia-smi says besides rows is a problem, unless all of the `watched` GPUs could be read all the
    same: a broken GPU that is not watched does no harm.
    """
    said = split_answer(text)
    codes = dict(line.split(" ", 1) for line in said["code"] if " " in line)
    gpus, skipped, strange = _read_gpu_rows(said["gpu"], watched)
    missing = sorted(set(watched) - {gpu.index for gpu in gpus} - skipped)
    strange += tuple(f"GPU {index} is not listed" for index in missing)
    processes, odd = read_process_rows(said["app"])
    problems = _trouble(codes.get("gpu", ""), said["gpu"], strange, watched)
    problems = problems or _trouble(codes.get("app", ""), said["app"], odd, watched)
    if not problems and not gpus and not skipped:
        problems = ("it lists no GPU",)
    uuids = {gpu.uuid for gpu in gpus}
    reading = GpuReading(gpus, tuple(process for process in processes if process.gpu_uuid in uuids))
    return GpuLook(reading, dict(read_tenants(said["pid"])), problems)


def split_answer(text: str) -> dict[str, list[str]]:
    """The lines of an answer of supervisor.sh about GPUs, by their first word. Raises HostLost when it is none."""
    said: dict[str, list[str]] = {"gpu": [], "app": [], "code": [], "pid": []}
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word not in said:
            raise HostLost(f"the answer about GPUs makes no sense: {line[:200]!r}")
        said[word].append(rest)
    return said


def _trouble(code: str, lines: list[str], strange: tuple[str, ...], watched: tuple[int, ...]) -> tuple[str, ...]:
    """What is wrong with an answer that ended with `code` and holds the `strange` parts; empty: it can be used."""
    if code == "hung":
        return ("it gave no answer and was killed: the driver may hang",)
    if code == "stuck":
        return ("it gave no answer and does not even end on SIGKILL: the driver hangs",)
    if code in ("0", _WARNED) or (watched and not strange):
        return strange
    return (f"exit code {code or 'unknown'}: {' / '.join(lines)[:500]}",)


def _read_gpu_rows(rows: list[str], watched: tuple[int, ...]) -> tuple[tuple[Gpu, ...], set[int], tuple[str, ...]]:
    """The watched GPUs, the indices of those among them without a memory figure, and what could not be read."""
    gpus: list[Gpu] = []
    skipped: set[int] = set()
    problems: list[str] = []
    for row in rows:
        fields = [field.strip() for field in row.split(",")]
        if len(fields) < 5 or not is_index(fields[0]):
            if not watched and not _NOT_A_ROW.match(row):
                problems.append(row[:300])
            continue
        index = int(fields[0])
        if watched and index not in watched:
            continue
        if any(_NOT_TOLD.fullmatch(field) for field in fields[-2:]):
            skipped.add(index)
            continue
        used, total = (_NUMBER.fullmatch(field) for field in fields[-2:])
        if used is None or total is None:
            problems.append(f"GPU {index}: memory {fields[-2]!r} of {fields[-1]!r}")
            continue
        gpus.append(Gpu(index, ", ".join(fields[1:-3]), fields[-3], int(used[1]), int(total[1])))
    return tuple(gpus), skipped, tuple(problems)


def is_index(word: str) -> bool:
    """Whether it can be the number of a GPU or of a process."""
    return _INDEX.fullmatch(word) is not None


def read_process_rows(rows: list[str]) -> tuple[tuple[GpuProcess, ...], tuple[str, ...]]:
    """The processes, and the rows that are none. A row without a pid names nobody and is passed over."""
    processes: list[GpuProcess] = []
    problems: list[str] = []
    for row in rows:
        fields = [field.strip() for field in row.split(",")]
        if len(fields) >= 4 and is_index(fields[1]):
            size = _NUMBER.fullmatch(fields[-1])
            name = ", ".join(fields[2:-1])
            processes.append(GpuProcess(fields[0], int(fields[1]), name, int(size[1]) if size else None))
        elif not _NOT_A_ROW.match(row) and not any(_NOT_TOLD.fullmatch(field) for field in fields):
            problems.append(row[:300])
    return tuple(processes), tuple(problems)


def read_tenants(lines: list[str]) -> Iterator[tuple[int, Tenant]]:
    """Who the processes are, by pid. Raises HostLost."""
    for line in lines:
        words = line.split(" ", 2)
        if len(words) != 3 or not is_index(words[0]):
            raise HostLost(f"the answer about a process makes no sense: {line[:200]!r}")
        pid, owner, description = words
        yield int(pid), Tenant("" if owner in "-?" else owner, "" if owner == "?" else description)
