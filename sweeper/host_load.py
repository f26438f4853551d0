"""Many requests at once, sent from the host itself by a small client that the server's own Python runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sweeper.engines.base import HttpRequest, StreamedResponse


@dataclass(frozen=True)
class Arrivals:
    """When requests are sent. At most `concurrency` are under way at once.

    `offsets_s`: when each arrives, in seconds from the first; empty: each next one when one has ended.
    """

    concurrency: int
    offsets_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class Exchange:
    """What became of one request: its answer, or why there is none. `sent_ms` counts from the load's beginning.

    `late_ms`: how long after its arrival it was sent (0 without arrivals).
    """

    sent_ms: float
    late_ms: float
    response: StreamedResponse | None
    error: str = ""


@dataclass(frozen=True)
class LoadReport:
    """The exchanges in the order of the requests, and what the client itself cost: CPU and wall-clock seconds."""

    exchanges: tuple[Exchange, ...]
    cpu_s: float
    wall_s: float


SendAll = Callable[[Sequence[HttpRequest], Arrivals, float], LoadReport]
"""Sends all requests, each of which may take so many seconds. Raises TrialError."""
