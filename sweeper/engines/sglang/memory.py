"""Whose memory it was that ran out: the server's own, or that of something else on the same GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNITS = {"bytes": 2.0**-30, "KiB": 2.0**-20, "MiB": 2.0**-10, "GiB": 1.0, "TiB": 1024.0}
_SIZE = r"(\d{1,9}(?:\.\d{1,9})?) (bytes|[KMGT]iB)"
_OTHER = re.compile(rf"[Pp]rocess \d+ has {_SIZE} memory in use")
_OWN_ALLOCATED = re.compile(rf"{_SIZE} is allocated by PyTorch")
_OWN_RESERVED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_CAPACITY = re.compile(rf"total capacity of {_SIZE}|{_SIZE} total capacity")
_FREE_AT_START = re.compile(r"([^\]\n]{0,40})\] Load weight begin\. avail mem=(\d{1,6}(?:\.\d{1,6})?) GB")

_SLACK_GIB = 8.0  # a process' context, CUDA graphs and libraries, which torch does not count as its own
_FOREIGN_GIB = 2.0
_HOPPER_GIB = 60.0  # SGLang takes fa3 by itself on Hopper only, and no such GPU has less
_FREE_SHARE = 0.7  # what an idle GPU has free before the first weights: contexts and NCCL take a few GiB


def occupied(lines: Sequence[str]) -> str:
    """How the log shows that something else held the GPU's memory, in words; empty when it does not.

    Either torch names the processes in its message, or little was free before the first weights were loaded.
    """
    for line in lines:
        foreign = foreign_gib(line)
        if foreign > _FOREIGN_GIB:
            return f"other processes held {foreign:.1f} GiB of the GPU"
    free = _free_at_start(lines)
    capacity = max((_gib(found) for line in lines for found in _CAPACITY.finditer(line)), default=0.0)
    if not capacity and any("Use fa3 backend by default" in line for line in lines):
        capacity = _HOPPER_GIB
    if free is None or free >= _FREE_SHARE * capacity:
        return ""
    known = f"of {capacity:.1f} GiB" if capacity > _HOPPER_GIB else f"on a GPU of {capacity:.0f} GiB or more"
    return f"only {free:.1f} GiB {known} were free before the first weights were loaded"


def foreign_gib(line: str) -> float:
    """GiB that other processes held, by torch's out-of-memory message; 0 when it names none.

    In a container torch cannot tell its own process from others: then as much as may be its own is left out,
    and all of it where the message does not say how much was its own.
    """
    others = sum(_gib(found) for found in _OTHER.finditer(line))
    if "this process has" in line:
        return others
    own = [_gib(found) for found in (*_OWN_ALLOCATED.finditer(line), *_OWN_RESERVED.finditer(line))]
    return max(0.0, others - sum(own) - _SLACK_GIB) if own else 0.0


def _free_at_start(lines: Sequence[str]) -> float | None:
    """The least memory free before any rank's first weights; None when the log's beginning is not there."""
    if not any("server_args=" in line for line in lines):
        return None
    first: dict[str, float] = {}
    for line in lines:
        if found := _FREE_AT_START.search(line):
            first.setdefault(found[1].partition(" ")[2].partition(" ")[2], float(found[2]))
    return min(first.values(), default=None)


def _gib(found: re.Match[str]) -> float:
    number, unit = (group for group in found.groups() if group)
    return float(number) * _UNITS[unit]
