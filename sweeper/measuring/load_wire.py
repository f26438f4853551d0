"""The words that host_load.py and the client on the host exchange: the job, and its packed answer. Pure.

All of the answer is untrusted: bounded, and damage of any kind is a ValueError.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweeper.engines.base import HttpRequest, StreamedResponse
from sweeper.http import MAX_LINE_BYTES, MAX_STREAM_BYTES

PIECE_CHARS = 120_000
"""Linux takes 128 KiB in one argument or variable."""

MAX_PACKED_BYTES = 5_500_000
"""All answers of one load, packed: a launcher's `run` gives 8 MiB of output, of which base64 takes a third."""

_MAX_TOLD_BYTES = 16 * 1024 * 1024
_ANSWER = re.compile(rb"^specsweep-load ([A-Za-z0-9+/=]*) end$", re.MULTILINE)
_GAP = re.compile(rb"(\d{1,15})(?:@(\d{1,9}),(-?\d{1,9}))?")
_PART = re.compile(rb",(\d{1,9}),(\d{1,9}),(\d{1,9}):")


@dataclass(frozen=True)
class Exchange:
    """What became of one request: its answer, or the error for which there is none.

    `sent_ms` counts from the load's beginning, `e2e_latency_ms` from there to the last byte. `late_ms`: how long
    after its arrival it was sent (0 without arrivals). `packed`: the lines of the answer. `hung`: it took too
    long, or was not sent because another one did.
    """

    sent_ms: float
    late_ms: float = 0.0
    e2e_latency_ms: float = 0.0
    packed: bytes = b""
    error: str = ""
    hung: bool = False

    def response(self) -> StreamedResponse:
        """The answer, unpacked anew: up to 64 MiB. Raises ValueError when it is damaged."""
        return StreamedResponse(unpacked(self.packed), self.e2e_latency_ms)


def job_text(requests: Sequence[HttpRequest], **settings: object) -> str:
    """The job as one word of base64 letters."""
    bodies = [(r.method, r.path, "" if r.json is None else json.dumps(r.json)) for r in requests]
    limits = {"line_bytes": MAX_LINE_BYTES, "stream_bytes": MAX_STREAM_BYTES, "packed_bytes": MAX_PACKED_BYTES}
    job = {"requests": bodies, "limits": limits, **settings}
    return base64.b64encode(zlib.compress(json.dumps(job).encode())).decode()


def pieces(text: str) -> list[str]:
    """`text` in pieces that fit into one argument each."""
    return [text[start : start + PIECE_CHARS] for start in range(0, len(text), PIECE_CHARS)]


def read_answer(stdout: bytes, num_requests: int) -> tuple[list[Exchange], float, float]:
    """What became of each request, and the client's CPU and wall-clock seconds.

    Whatever else stands in `stdout` is ignored. Raises ValueError unless there is exactly one whole answer.
    """
    found = _ANSWER.findall(stdout)
    if len(found) != 1:
        raise ValueError(f"{len(found)} answers in {len(stdout)} bytes, ending in {stdout[-200:]!r}")
    try:
        unzip = zlib.decompressobj()
        text = unzip.decompress(base64.b64decode(found[0], validate=True), _MAX_TOLD_BYTES)
        if not unzip.eof:
            raise ValueError("cut short, or too long")
        told = json.loads(text)
        exchanges = [_told(exchange) for exchange in told["exchanges"]]
        cpu_s, wall_s = _number(told["cpu_s"]), _number(told["wall_s"])
    except (binascii.Error, zlib.error, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"the client's answer is damaged ({type(error).__name__}: {error})") from error
    if len(exchanges) != num_requests:
        raise ValueError(f"the client answers for {len(exchanges)} of {num_requests} requests")
    return exchanges, cpu_s, wall_s


def unpacked(packed: bytes) -> tuple[tuple[float, bytes], ...]:
    """The lines of one answer, each with its time in ms, but for blank ones. Raises ValueError when damaged."""
    try:
        unzip = zlib.decompressobj(13)
        records = unzip.decompress(packed, MAX_STREAM_BYTES)
        if not unzip.eof:
            raise ValueError("cut short")
        return tuple(_lines(records))
    except (zlib.error, ValueError, IndexError) as error:
        raise ValueError(f"the client's answer is damaged ({type(error).__name__}: {error})") from error


def _lines(records: bytes) -> list[tuple[float, bytes]]:
    """Undoes `Packer.add` of load_packing.py."""
    lines: list[tuple[float, bytes]] = []
    parts = [b""]
    position = at_us = num_bytes = 0
    while position < len(records):
        gap = _GAP.match(records, position)
        if gap is None:
            raise ValueError(f"no line at {position}")
        at_us, position = at_us + int(gap[1]), gap.end()
        if gap[2]:
            _resize(parts, int(gap[2]) + 1, int(gap[3]))
        while part := _PART.match(records, position):
            index, shared, size = int(part[1]), int(part[2]), int(part[3])
            position = part.end() + size
            parts[index] = parts[index][:shared] + records[part.end() : position]
        if records[position : position + 1] != b";":
            raise ValueError(f"no end of a line at {position}")
        position += 1
        line = b'"'.join(parts)
        num_bytes += len(line)
        if len(line) > MAX_LINE_BYTES or num_bytes > MAX_STREAM_BYTES:
            raise ValueError("longer than any answer may be")
        lines.append((at_us / 1000, line))
    return lines


def _resize(parts: list[bytes], place: int, count: int) -> None:
    """Put `count` empty parts at `place`, or take as many away."""
    if count > MAX_LINE_BYTES:
        raise ValueError(f"{count} parts")
    parts[place : place + max(0, -count)] = [b""] * max(0, count)


def _told(exchange: Mapping[str, Any]) -> Exchange:
    """One exchange, checked. Raises ValueError, TypeError or KeyError."""
    error = exchange["error"]
    if not isinstance(error, str) or not (error or exchange["e2e_ms"]):
        raise ValueError("neither an answer nor an error")
    return Exchange(
        sent_ms=_number(exchange["sent_ms"]),
        late_ms=_number(exchange["late_ms"]),
        e2e_latency_ms=_number(exchange["e2e_ms"]),
        packed=base64.b64decode(exchange["lines"], validate=True),
        error=error,
        hung=exchange["hung"] is True,
    )


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is not a number of seconds")
    return float(value)
