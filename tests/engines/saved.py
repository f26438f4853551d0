"""Answers that real servers gave, saved in tests/data."""

from __future__ import annotations

from pathlib import Path

from sweeper.engines.base import StreamedResponse

LLAMACPP = Path(__file__).parents[1] / "data" / "llamacpp" / "xllamacpp-2026.10.11549"


def text(name: str) -> str:
    return (LLAMACPP / name).read_text()


def streamed(body: bytes, ms_per_line: float = 10.0) -> StreamedResponse:
    """`body` as if one line had arrived every `ms_per_line` milliseconds."""
    lines = tuple((ms_per_line * (i + 1), line) for i, line in enumerate(body.split(b"\n")))
    return StreamedResponse(lines, e2e_latency_ms=ms_per_line * (len(lines) + 1))


def chat(name: str) -> StreamedResponse:
    return streamed((LLAMACPP / name).read_bytes())
