"""What a real SGLang wrote and answered, saved in tests/data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SAVED = Path(__file__).parents[1] / "data" / "sglang" / "0.5.15.post1-h200"

HEALTHY = (
    "baseline_default",
    "baseline_nograph",
    "e3_s3k1d4",
    "e3_s3k1d4_nograph",
    "e3_s5k4d8_flashinfer",
    "ngram",
    "paused_and_resumed",
    "tp2_default",
    "tp2_nccl_info",
)


def log(name: str) -> str:
    """A log as it is read on the way: progress bars end their lines with carriage returns."""
    return (SAVED / "logs" / f"{name}.log").read_bytes().decode()


def page(name: str) -> str:
    return (SAVED / "api" / name).read_text()


def stream(name: str) -> bytes:
    return (SAVED / "api" / f"generate_stream_{name}.sse").read_bytes()


def server_info(name: str) -> dict[str, Any]:
    info: dict[str, Any] = json.loads(page(f"server_info_{name}.json"))
    return info
