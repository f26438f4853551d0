"""Which fault this launch has: STANDIN_FAULT=NAME[:DETAIL], or the first line that fits of STATE/faults.

A line of that file is JSON: {"name": ..., "detail": ..., "when": {"--flag": "value"}, "launches": 2}. The launch's
arguments must fit `when`; `launches` counts down to 0, absent: every launch.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import settings

_NAMES = """
oom_load oom_capture weights_too_big bad_memfrac hang_init_nccl hang_load hang_capture hang_warmup slow_weights
crash_load crash_capture crash_mid_benchmark detokenizer_killed server_killed_mid_benchmark scheduler_stopped
silent_hang_after_n watchdog orphan_memory orphan_port port_stolen wrong_model wrong_nonce accept_one garbage_http
garbage_stream truncated_stream http_500 slow_http log_flood non_utf8_log no_final_meta ignore_sigterm
illegal_memory_access unbalanced_memory nccl_error graph_false unknown_flag gpu_memory_stuck nvidia_smi_hangs
nvidia_smi_garbage disk_full_log
"""
NAMES = frozenset(_NAMES.split())


@dataclass(frozen=True)
class Fault:
    """What goes wrong in this launch; an empty name: nothing."""

    name: str = ""
    detail: str = ""

    def __post_init__(self) -> None:
        if self.name and self.name not in NAMES:
            raise ValueError(f"no fault is called {self.name!r}; there are: {', '.join(sorted(NAMES))}")

    def number(self, default: float) -> float:
        """The detail as a number."""
        return float(self.detail) if self.detail else default


def parse(text: str) -> Fault:
    """A fault from NAME[:DETAIL]."""
    name, _, detail = text.partition(":")
    return Fault(name, detail)


def fits(when: Mapping[str, str], argv: Sequence[str]) -> bool:
    """Whether every flag of `when` has that value in `argv`; the value "true": the bare flag is there."""
    given = {word.partition("=")[0]: word.partition("=")[2] for word in argv if word.startswith("--")}
    for at, word in enumerate(argv[:-1]):
        if word in given and not given[word] and not argv[at + 1].startswith("--"):
            given[word] = argv[at + 1]
    return all(flag in given and given[flag] == ("" if value == "true" else value) for flag, value in when.items())


def choose(argv: Sequence[str]) -> Fault:
    """The fault of this launch. The environment comes first; a line with a number of launches is used up."""
    if "STANDIN_FAULT" in os.environ:
        return parse(os.environ["STANDIN_FAULT"])
    path = settings.state() / "faults"
    if not path.is_file():
        return Fault()
    with path.open("r+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        lines: list[dict[str, Any]] = [json.loads(line) for line in stream]
        for line in lines:
            if line.get("launches", 1) < 1 or not fits(line.get("when", {}), argv):
                continue
            if "launches" in line:
                line["launches"] -= 1
                stream.seek(0)
                stream.truncate()
                stream.writelines(json.dumps(kept) + "\n" for kept in lines)
            return Fault(line["name"], line.get("detail", ""))
    return Fault()
