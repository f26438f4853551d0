"""What is asked of nvidia-smi beside memory, and its answers as data. Pure; what makes no sense is left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from launchers.gpu_sample import QUERIES, GpuSample, read_sample
from launchers.looking import Told
from sweeper.provenance import GPU_FIELDS, GPU_POLICY
from sweeper.text import plain

_CSV = "--format=csv,noheader"
QUESTIONS: Mapping[str, str] = {
    "policy": f"--query-gpu={GPU_FIELDS} {_CSV}",
    "sample": f"--query-gpu={','.join(QUERIES[0])} {_CSV},nounits",
    "older": f"--query-gpu={','.join(QUERIES[1])} {_CSV},nounits",
    "remapped": f"--query-remapped-rows=gpu_uuid,remapped_rows.pending,remapped_rows.failure {_CSV}",
    "version": "--version",
    "topology": "topo -m",
    "peers": "topo -p2p r",
}
"""A word for each, and its arguments. A field that a driver does not know spoils only its own question."""

_MAX_GPUS = 1024
_CUDA = re.compile(r"CUDA Version *: *(\d{1,3}\.\d{1,3})")


def answered(told: Told, word: str) -> tuple[str, ...]:
    """The lines of an answer that ended well; none of one that did not."""
    return told.all(word) if f"{word} 0" in told.all("code") else ()


def policies(told: Told, gpus: Sequence[int]) -> dict[int, dict[str, str]]:
    """How each GPU in use (empty: all) is set: `driver_version` and the fields of GPU_POLICY."""
    names = ("driver_version", *(field for field, _ in GPU_POLICY))
    found = {}
    for line in answered(told, "policy")[:_MAX_GPUS]:
        index, *cells = [plain(cell, 60) for cell in line.split(",")]
        if index.isdecimal() and len(cells) == len(names) and (not gpus or int(index) in gpus):
            found[int(index)] = dict(zip(names, cells, strict=True))
    return found


def sample(told: Told, gpus: Sequence[int], idle_mib: int) -> GpuSample:
    """Temperatures, clocks and what slows a GPU down, as a launch samples them; empty when not told."""
    word, query = ("sample", QUERIES[0]) if answered(told, "sample") else ("older", QUERIES[1])
    lines = [f"gpu {line}" for line in answered(told, word)[:_MAX_GPUS]]
    return read_sample("\n".join([*lines, "code gpu 0", "code app 0"]), query, "", tuple(gpus), idle_mib)


def remapped(told: Told) -> tuple[list[str], list[str]]:
    """Uuids of GPUs with rows of memory that wait for a reset, and of those with rows that cannot be mended."""
    pending, failed = [], []
    for line in answered(told, "remapped")[:_MAX_GPUS]:
        cells = [plain(cell, 60).lower() for cell in line.split(",")]
        if len(cells) == 3:
            pending += [cells[0]] if cells[1] in ("yes", "1", "pending") else []
            failed += [cells[0]] if cells[2] in ("yes", "1", "failure") else []
    return pending, failed


def cuda_version(told: Told) -> str:
    """The newest CUDA that the driver runs; empty when it is not told."""
    return next((found[1] for line in told.all("version") if (found := _CUDA.search(line))), "")
