"""Who else used the GPUs of a launch, as far as that is certain. Pure.

A false alarm throws a good launch away, so in doubt nobody is accused. In a container, or where the server itself
runs in one, the numbers of processes and our marks on them mean little: of a host's processes nothing is said
unless processes of the server are recognised among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from launchers.gpu_sample import GpuHolder, GpuSample
from launchers.gpus import GpuReading
from sweeper.measuring.gpu_window import Key, gpu_label

_MAX_LINES = 20
_MIB_PER_GIB = 1024
_GO_BETWEEN = "nvidia-cuda-mps-"
"""MPS: before Volta its server holds the memory of all its clients, those of our server too."""


def strangers(samples: Sequence[GpuSample], idle_mib: int, before: GpuReading | None = None) -> tuple[str, ...]:
    """Processes of somebody else that held memory of a watched GPU, one line each (20 at most).

    It holds more than `idle_mib` beyond what it held in `before` (the look that found the GPUs idle), shares the
    GPU with a recognised process of the server, or has come to another GPU since the first sample.
    """
    held = {(it.gpu_uuid, it.pid): it.memory_mib or 0 for it in before.processes} if before else {}
    first: dict[int, set[tuple[str, int]]] = {}  # per host: who held what when the server was first recognised
    found: dict[tuple[str, int], GpuHolder] = {}
    for sample in samples:
        ours = {(it.node, it.index) for it in sample.holders if it.is_ours}
        for node in {node for node, _ in ours} - first.keys():
            first[node] = {_who(it) for it in sample.holders if it.node == node}
        for it in sample.holders:
            beside = (it.node, it.index) in ours
            came = it.node in {node for node, _ in ours} and _who(it) not in first[it.node]
            if _is_foreign(it) and (beside or came) and it.memory_mib > idle_mib + held.get(_who(it), 0):
                found[_who(it)] = max(found.get(_who(it), it), it, key=lambda seen: seen.memory_mib)
    is_group = any(gpu.node for sample in samples for gpu in sample.gpus)
    lines = (
        f"{gpu_label((it.node, it.index), is_group)}: {it.description}, {it.memory_mib} MiB"
        for it in found.values()
    )
    return tuple(lines)[:_MAX_LINES]


def unseen_memory(samples: Sequence[GpuSample], idle_mib: int) -> Iterator[str]:
    """One line for each GPU on which memory grew that no listed process holds: a reason to look, no proof.

    That is how somebody in another container shows. It must have grown by more than `idle_mib` and be seen so
    twice: the memory of a GPU and of its processes is read one after the other.
    """
    is_group = any(gpu.node for sample in samples for gpu in sample.gpus)
    for key, values in _unlisted(samples).items():
        grown = [value - values[0] for value in values if value - values[0] > idle_mib]
        if len(grown) >= 2:
            yield (
                f"{min(grown) / _MIB_PER_GIB:.1f} GiB of {gpu_label(key, is_group)} came into use that no process "
                "shown here holds: somebody else's, perhaps, in another container"
            )


def _unlisted(samples: Sequence[GpuSample]) -> Mapping[Key, list[float]]:
    """Per GPU, the MiB that no listed process holds, in the samples that list processes of the server on it."""
    found: dict[Key, list[float]] = {}
    for sample in samples:
        ours = {(it.node, it.index) for it in sample.holders if it.is_ours}
        for gpu in sample.gpus:
            key = (gpu.node, gpu.index)
            if key in ours and gpu.memory_used_mib is not None and gpu.listed_mib is not None:
                found.setdefault(key, []).append(gpu.memory_used_mib - gpu.listed_mib)
    return found


def _who(holder: GpuHolder) -> tuple[str, int]:
    return holder.gpu_uuid, holder.pid


def _is_foreign(holder: GpuHolder) -> bool:
    return holder.is_ours is False and _GO_BETWEEN not in holder.name + holder.description
