"""What nvidia-smi shows of a host's GPUs while a server works: clocks, heat, power, and who holds memory of them.

Nothing is raised for what it does not tell: a figure is then None, and None is not "all is well".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from launchers.gpus import GpuProcess, Tenant, is_index, read_process_rows, read_tenants, split_answer

_FIGURES = (
    "index",
    "uuid",
    "memory.used",
    "utilization.gpu",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "temperature.gpu",
    "power.draw",
    "power.limit",
)
# The reasons were renamed with driver 535. An unknown field makes nvidia-smi refuse the whole query.
QUERIES: tuple[tuple[str, ...], ...] = (
    (*_FIGURES, "clocks_event_reasons.active"),
    (*_FIGURES, "clocks_throttle_reasons.active"),
    _FIGURES,
)
REASONS: Mapping[int, str] = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
"""Bits of the reasons: nvmlClocksEventReason* of nvml.h, by the names of `nvidia-smi --help-query-gpu`."""
IDLE = "gpu_idle"
POWER_CAP = "sw_power_cap"
HW_SLOWDOWN = "hw_slowdown"
"""NVIDIA: also shown in passing, when the clocks change; the next two say why it is there."""
HW_CAUSES = frozenset({"hw_thermal_slowdown", "hw_power_brake_slowdown"})
THROTTLING = HW_CAUSES | {HW_SLOWDOWN, "sw_thermal_slowdown"}
"""Reasons that mean a GPU slower than it should be. A power cap is none: under load it is how clocks are set."""

_REFUSED = re.compile(r"^gpu .*is not a valid field to query", re.MULTILINE)
_FIGURE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(?: (?:MiB|MHz|%|W|C))?")
_MASK = re.compile(r"0x[0-9A-Fa-f]{1,16}")


@dataclass(frozen=True)
class GpuState:
    """One GPU at one moment; what was not told is None. `node` is the rank of its host in a group, else 0.

    `listed_mib`: memory of the processes that are listed for it. `reasons`: what sets its clocks, in words.
    """

    node: int
    index: int
    memory_used_mib: float | None
    listed_mib: int | None
    utilization_pct: float | None
    sm_clock_mhz: float | None
    max_sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    temperature_c: float | None
    power_w: float | None
    power_limit_w: float | None
    reasons: tuple[str, ...] | None

    @property
    def works(self) -> bool:
        """Whether it is not known to do nothing."""
        return self.utilization_pct != 0 and IDLE not in (self.reasons or ())


@dataclass(frozen=True)
class GpuHolder:
    """A process that holds more of a GPU than an idle one may. `is_ours`: it is of the server; None: unknown."""

    node: int
    index: int
    gpu_uuid: str
    pid: int
    memory_mib: int
    is_ours: bool | None
    name: str
    description: str


@dataclass(frozen=True)
class GpuSample:
    """One look at the watched GPUs, and what could not be seen. `is_stuck`: nvidia-smi survived SIGKILL."""

    gpus: tuple[GpuState, ...]
    holders: tuple[GpuHolder, ...] = ()
    problems: tuple[str, ...] = ()
    is_stuck: bool = False


class GpuSampler:
    """Takes samples of one host's GPUs and remembers which fields its driver knows.

    A thread that is late may still take a sample when the next one begins: nothing is shared but that memory.

    `watched`: indices, empty for all; a process with at most `idle_mib` of a GPU is no concern.
    """

    def __init__(self, watched: tuple[int, ...], idle_mib: int) -> None:
        self._watched = watched
        self._idle_mib = idle_mib
        self._known = 0  # the first of QUERIES that was not refused so far

    def take(self, ask: Callable[[str], str | None], server_id: str) -> GpuSample | None:
        """One sample; None where there is no nvidia-smi. Raises HostLost when an answer makes no sense.

        `ask(fields)` gives the answer of the verb `sample` of supervisor.sh about the server `server_id`.
        """
        for known in range(self._known, len(QUERIES)):
            if (text := ask(",".join(QUERIES[known]))) is None:
                return None
            if not _REFUSED.search(text) or known == len(QUERIES) - 1:
                self._known = known
                return read_sample(text, QUERIES[known], server_id, self._watched, self._idle_mib)
        return None


def read_sample(
    text: str, query: tuple[str, ...], server_id: str, watched: tuple[int, ...], idle_mib: int
) -> GpuSample:
    """What the verb `sample` tells in `text` about the fields `query`. Raises HostLost when it is not its answer.

    Whatever can be read counts, however nvidia-smi ended: a figure that is there is a figure.
    """
    said = split_answer(text)
    told = dict(_rows(said["gpu"], query, watched))
    processes, _ = read_process_rows(said["app"])
    tenants = dict(read_tenants(said["pid"]))
    codes = dict(line.split(" ", 1) for line in said["code"] if " " in line)
    gpus, holders = [], []
    for index, row in sorted(told.items()):
        mine = [process for process in processes if process.gpu_uuid == row["uuid"]]
        listed = [process.memory_mib for process in mine if process.memory_mib is not None]
        complete = codes.get("app") == "0" and len(listed) == len(mine)
        gpus.append(_state(index, row, sum(listed) if complete else None))
        holders += [_holder(index, process, tenants, server_id) for process in mine if _is_big(process, idle_mib)]
    problems = list(_problems(codes, said, bool(told)))
    return GpuSample(tuple(gpus), tuple(holders), tuple(problems), "stuck" in codes.values())


def words_of(mask: int) -> tuple[str, ...]:
    """The reasons in a bit mask, lowest bit first. A bit that is not known here is told as its number."""
    bits = (1 << place for place in range(mask.bit_length()) if mask >> place & 1)
    return tuple(REASONS.get(bit, f"{bit:#x}") for bit in bits)


def _rows(
    lines: Sequence[str], query: tuple[str, ...], watched: tuple[int, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Index and fields of each watched GPU; a line with another number of fields (warnings) is none."""
    for line in lines:
        words = [word.strip() for word in line.split(",")]
        if len(words) == len(query) and is_index(words[0]) and (not watched or int(words[0]) in watched):
            yield int(words[0]), dict(zip(query, words, strict=True))


def _state(index: int, row: Mapping[str, str], listed_mib: int | None) -> GpuState:
    return GpuState(
        node=0,
        index=index,
        memory_used_mib=_figure(row["memory.used"]),
        listed_mib=listed_mib,
        utilization_pct=_figure(row["utilization.gpu"]),
        sm_clock_mhz=_figure(row["clocks.sm"]),
        max_sm_clock_mhz=_figure(row["clocks.max.sm"]),
        memory_clock_mhz=_figure(row["clocks.mem"]),
        temperature_c=_figure(row["temperature.gpu"]),
        power_w=_figure(row["power.draw"]),
        power_limit_w=_figure(row["power.limit"]),
        reasons=next((_reasons(word) for name, word in row.items() if name.endswith("reasons.active")), None),
    )


def _figure(word: str) -> float | None:
    """The number, with its unit or without; None for [N/A] and all the other ways of saying nothing."""
    found = _FIGURE.fullmatch(word)
    return float(found[1]) if found else None


def _reasons(word: str) -> tuple[str, ...] | None:
    return words_of(int(word, 16)) if _MASK.fullmatch(word) else None


def _is_big(process: GpuProcess, idle_mib: int) -> bool:
    return process.memory_mib is not None and process.memory_mib > idle_mib


def _holder(index: int, process: GpuProcess, tenants: Mapping[int, Tenant], server_id: str) -> GpuHolder:
    tenant = tenants.get(process.pid)
    # One that is not visible may be the server's own: in a container its processes can have other numbers.
    visible = tenant is not None and bool(tenant.description)
    return GpuHolder(
        node=0,
        index=index,
        gpu_uuid=process.gpu_uuid,
        pid=process.pid,
        memory_mib=process.memory_mib or 0,
        is_ours=tenant.server_id == server_id if tenant is not None and visible else None,
        name=process.name,
        description=tenant.description if tenant is not None and visible else f"pid {process.pid}: {process.name}",
    )


def _problems(codes: Mapping[str, str], said: Mapping[str, Sequence[str]], is_told: bool) -> Iterator[str]:
    """What kept nvidia-smi from answering, one line for each of its two questions."""
    for word, what in (("gpu", "GPUs"), ("app", "processes")):
        code = codes.get(word, "0")
        if code in ("hung", "stuck"):
            yield f"nvidia-smi gave no answer about {what} in time"
        elif code != "0" and not (word == "gpu" and is_told):
            yield f"nvidia-smi about {what}: exit code {code}: {' / '.join(said[word])[:300]}"
    if codes.get("gpu") == "0" and not is_told:
        yield f"nvidia-smi showed no GPU that is watched: {' / '.join(said['gpu'])[:300]}"
