"""Everything the stand-in is told by its environment (STANDIN_* variables)."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

Args = dict[str, Any]
"""The fields of ServerArgs by name, in the order of the version's own declaration."""
KNOWN = ((0, 5, 8), (0, 5, 10), (0, 5, 15), (0, 5, 20), (0, 5, 23))


def version_text() -> str:
    """The version that is imitated, such as 0.5.15.post1."""
    return os.environ.get("STANDIN_VERSION", "0.5.15.post1")


def version() -> tuple[int, int, int]:
    """The newest known version that is not newer than STANDIN_VERSION."""
    words = version_text().split(".post")[0].split(".")
    asked = (int(words[0]), int(words[1]), int(words[2]))
    return max((known for known in KNOWN if known <= asked), default=KNOWN[0])


def state() -> Path:
    """The folder in which GPU memory, the fault file and the count of launches live."""
    return Path(os.environ["STANDIN_STATE"])


def scaled(seconds: float) -> float:
    """A duration of the start or of an orderly end; STANDIN_TIME_SCALE stretches it."""
    return seconds * float(os.environ.get("STANDIN_TIME_SCALE", "1"))


def waited(seconds: float) -> float:
    """One of the server's own waits (health limit, crash diagnostics); STANDIN_WAIT_SCALE shortens it in tests."""
    return seconds * float(os.environ.get("STANDIN_WAIT_SCALE", "1"))


def jitter() -> float:
    """Launches differ in speed by up to this share, in both directions."""
    return float(os.environ.get("STANDIN_JITTER", "0.015"))


def max_s() -> int:
    """Every process of the stand-in ends by itself after so many seconds."""
    return max(1, int(os.environ.get("STANDIN_MAX_S", "600")))


def end_in_time() -> None:
    """Arm the alarm that ends this process whatever happens to the others."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(max_s())


def count_launch() -> int:
    """The number of this launch on this host, from 1: what makes launches differ without a clock or a pid."""
    path = state() / "launches"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        stream.write(b".")
    return path.stat().st_size
