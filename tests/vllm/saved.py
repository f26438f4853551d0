"""What a real vLLM 0.32.0 said on a CPU, in tests/data/vllm: paths are shortened, the list of routes left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sweeper.engines.base import StreamedResponse

SAVED = Path(__file__).parents[1] / "data" / "vllm" / "0.32.0-cpu"
SERVED = tuple(sorted(path.parent.name for path in SAVED.glob("*/server_info.json")))
FAILED = tuple(sorted(path.name for path in SAVED.glob("fail_*")))


def text(case: str, name: str) -> str:
    return (SAVED / case / name).read_text()


def log(case: str) -> str:
    return text(case, "server.log")


def info(case: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(text(case, "server_info.json"))
    return told


def streamed(case: str, name: str = "chat.sse.txt") -> StreamedResponse:
    """The answer as if one line had arrived every ten milliseconds."""
    lines = text(case, name).encode().split(b"\n")
    return StreamedResponse(tuple((10.0 * (i + 1), line) for i, line in enumerate(lines)), 10.0 * (len(lines) + 1))
