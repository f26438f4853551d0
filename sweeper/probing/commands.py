"""The two programs that time all-reduces: their command lines, and what they print. Pure.

All of their output is untrusted: what cannot be understood is left out, and a setting that lacks a time failed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

SOURCE = files("sweeper.probing").joinpath("all_reduce_script.py").read_text(encoding="utf-8")

BYTES_PER_NUMBER = 2

FIND = r"""
for f in "$(command -v all_reduce_perf)" "$HOME/nccl-tests/build/all_reduce_perf" \
  /opt/nccl-tests/build/all_reduce_perf /opt/nccl_tests/build/all_reduce_perf \
  /usr/local/nccl-tests/build/all_reduce_perf /usr/src/nccl-tests/build/all_reduce_perf; do
  if [ -f "$f" ] && [ -x "$f" ] && "$f" -h 2>&1 | grep -qi usage; then printf '%s\n' "$f"; exit 0; fi
done
exit 1
"""
"""Prints the path of nccl-tests' program where there is one that can be loaded: it may lack its libraries."""

_WARMUP, _ITERATIONS = 20, 100
_MAX_NUMBER = 2.0**40
_MAX_LINES = 20_000
_TOLD = re.compile(r"specsweep-all-reduce (\{[^{}]{1,200}\})")


@dataclass(frozen=True)
class Messages:
    """What is timed: all-reduces of `num_ranks` GPUs, of the given numbers of tokens, as a model makes them."""

    num_ranks: int
    hidden_size: int
    num_layers: int
    tokens: tuple[int, ...]

    def num_bytes(self, tokens: int) -> int:
        """The size of a message."""
        return tokens * self.hidden_size * BYTES_PER_NUMBER


def nccl_tests_argv(program: str, messages: Messages) -> tuple[str, ...]:
    """One thread per GPU, all sizes from the smallest to the largest, each twice the one before; not verified.

    Raises ValueError for numbers of tokens that are not among these.
    """
    low, high = min(messages.tokens), max(messages.tokens)
    if any(tokens % low or (tokens // low).bit_count() != 1 for tokens in messages.tokens):
        raise ValueError(f"{messages.tokens} are not {low} times powers of 2")
    sizes = ("-b", str(messages.num_bytes(low)), "-e", str(messages.num_bytes(high)), "-f", "2")
    times = ("-w", str(_WARMUP), "-n", str(_ITERATIONS), "-c", "0")
    return (program, *sizes, "-d", "half", "-t", str(messages.num_ranks), "-g", "1", *times)


def script_argv(
    python: Sequence[str], messages: Messages, port: int, timeout_s: float, backend: str = "nccl"
) -> tuple[str, ...]:
    """The script, run by `python`; its processes meet at `port` of the loopback address."""
    job = {
        "num_ranks": messages.num_ranks,
        "backend": backend,
        "port": port,
        "timeout_s": timeout_s,
        "sizes_bytes": [messages.num_bytes(tokens) for tokens in messages.tokens],
    }
    return (*python, "-c", SOURCE, json.dumps(job))


def read_times(output: str, messages: Messages) -> dict[int, float]:
    """Number of tokens to microseconds, of whichever program printed this; empty unless all of them are there."""
    lines = output.splitlines()[-_MAX_LINES:]
    by_size = {**_table(lines), **_told(lines)}
    times = {tokens: by_size.get(messages.num_bytes(tokens)) for tokens in messages.tokens}
    found = {tokens: us for tokens, us in times.items() if us is not None}
    return found if len(found) == len(messages.tokens) else {}


def _table(lines: Sequence[str]) -> dict[int, float]:
    """Bytes to microseconds from nccl-tests' table. Its columns differ between versions: the heading tells.

    The last `time` is the one in place, as a server's all-reduces are.
    """
    times: dict[int, float] = {}
    size_at, time_at, width = -1, -1, 0
    for line in lines:
        words = line.removeprefix("#").split()
        if line.startswith("#") and "size" in words and "time" in words:
            size_at, time_at, width = words.index("size"), len(words) - 1 - words[::-1].index("time"), len(words)
        elif not line.startswith("#") and width and len(words) == width:
            size, us = _number(words[size_at]), _number(words[time_at])
            if size is not None and us is not None:
                times[round(size)] = us
    return times


def _told(lines: Sequence[str]) -> dict[int, float]:
    """The same from the script's lines."""
    times: dict[int, float] = {}
    for line in lines:
        if (found := _TOLD.fullmatch(line.strip())) is not None:
            try:
                told: Mapping[str, object] = json.loads(found[1])
            except ValueError:
                continue
            size, us = _number(str(told.get("bytes"))), _number(str(told.get("us")))
            if size is not None and us is not None:
                times[round(size)] = us
    return times


def _number(word: str) -> float | None:
    """A time or a size; None for what can be neither."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value <= _MAX_NUMBER else None
