"""SGLang's decode lines: what a running server does, against what it was asked to do.

Patterns that match every version's format string from 0.5.8 to 0.5.23. Nothing is anchored at the end of the line:
versions add to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sweeper.spec import ServerConfig

_RUNNING = re.compile(r"#running-req: (\d{1,9})\b")
_LENGTH = re.compile(r"(?<!block )accept len: (\d{1,9}(?:\.\d{1,9})?)")
_GRAPH = re.compile(r"\bcuda graph: (True|False)")

_ALL_KEPT = 0.995
_MIN_LINES = 5


@dataclass(frozen=True)
class DecodeLine:
    """One `Decode batch` line (every 40 decode steps). What a line does not say is None.

    `cuda_graph` speaks of CUDA graphs only, not of a CPU's or NPU's. The accept rate is not read: since 0.5.15 it
    has another denominator.
    """

    num_running: int
    accept_length: float | None
    cuda_graph: bool | None


def decode_lines(log: str) -> list[DecodeLine]:
    """Every decode line, in order."""
    lines = []
    for line in log.splitlines():
        if "Decode batch" in line and (running := _RUNNING.search(line)):
            graph = _GRAPH.search(line)
            lines.append(
                DecodeLine(
                    num_running=int(running[1]),
                    accept_length=_real(_LENGTH.search(line)),
                    cuda_graph=graph[1] == "True" if graph else None,
                )
            )
    return lines


def _real(found: re.Match[str] | None) -> float | None:
    return float(found[1]) if found else None


def running_mistakes(config: ServerConfig, log: str) -> list[str]:
    """What the decode lines show to be otherwise than `config` asks, one line each."""
    lines = decode_lines(log)
    return [*_graph_mistakes(config, lines), *_speculation_mistakes(config, lines)]


def _graph_mistakes(config: ServerConfig, lines: list[DecodeLine]) -> list[str]:
    """Decoding without CUDA graphs although nobody disabled them: far slower, and no error anywhere."""
    without = [line for line in lines if line.cuda_graph is False]
    if not without or not _wants_graphs(config):
        return []
    most = max(line.num_running for line in without)
    with_graph = max((line.num_running for line in lines if line.cuda_graph), default=0)
    why = f": no graph was captured for {most} requests at once" if 0 < with_graph < most else ""
    return [f"cuda graph: False in {len(without)} of {len(lines)} decode lines, though CUDA graphs are on{why}"]


def _wants_graphs(config: ServerConfig) -> bool:
    """Whether `config` leaves CUDA graphs for decoding on. A backend that is named overrules the switches."""
    flags = config.flags
    backend = flags.get("cuda_graph_backend_decode") or _decode_backend(flags.get("cuda_graph_config"))
    if backend is not None:
        return backend != "disabled"
    if flags.get("disable_cuda_graph") or flags.get("disable_decode_cuda_graph"):
        return False
    attention = {flags.get("attention_backend"), flags.get("decode_attention_backend")}
    return not attention & {"torch_native", "flex_attention"} and flags.get("device", "cuda") == "cuda"


def _decode_backend(text: object) -> object:
    """The backend for decoding in the JSON of `cuda_graph_config`; None when it names none."""
    try:
        value = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return None
    phase = value.get("decode") if isinstance(value, dict) else None
    return phase.get("backend") if isinstance(phase, dict) else None


def _speculation_mistakes(config: ServerConfig, lines: list[DecodeLine]) -> list[str]:
    """Speculation that is not there, that nobody asked for, or that is too good to be true."""
    flags: Mapping[str, object] = config.flags
    lengths = [line.accept_length for line in lines if line.accept_length is not None]
    if not flags.get("speculative_algorithm"):
        return ["decode lines report an accept length, though no speculation was asked for"] if lengths else []
    if len(lines) >= _MIN_LINES and not lengths:
        return ["decode lines report no accept length, though speculation was asked for"]
    steps = flags.get("speculative_num_steps")
    if len(lengths) < _MIN_LINES or not isinstance(steps, int) or isinstance(steps, bool):
        return []
    if min(lengths) < _ALL_KEPT * (steps + 1):
        return []
    seen = f"accept len is {min(lengths):g} or more in all {len(lengths)} decode lines"
    why = "acceptance is simulated (SGLANG_SIMULATE_ACC_LEN), or the text only repeats itself"
    return [f"{seen}, the most that {steps} steps can give: {why}"]
