"""What the search expected of a configuration before it was measured. Plain frozen data."""

from __future__ import annotations

from sweeper.frozen import Frozen


class Span(Frozen):
    """An expected value, and the interval in which nine of ten measured ones should fall."""

    mean: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a measured value lies in the interval."""
        return self.low <= value <= self.high

    def error_pct(self, value: float) -> float:
        """By how much a measured value lies above the expected one, in percent of that."""
        return 100 * (value / self.mean - 1)


class Forecast(Frozen):
    """Expectations of one trial, and why it was chosen. What the model does not know is None.

    `throughput` (tok/s) is the objective. `step_ms`: time of one verify step. `p_start`: chance that the server
    starts, 0 to 1. `gain_pct`: what the trial was expected to add to the best so far, on average and with the
    chance of a failure counted in; `remaining_pct`: the most that any untested configuration promised then.
    """

    throughput: Span | None = None
    accept_length: Span | None = None
    step_ms: Span | None = None
    p_start: float
    gain_pct: float | None = None
    remaining_pct: float | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """`predicted 85.3 tok/s (80.1-91.0), accept_len 3.20, a step 37.5 ms; starts: 97 %`."""
        parts = []
        if self.throughput is not None:
            span = self.throughput
            parts.append(f"{span.mean:.1f} tok/s ({span.low:.1f}-{span.high:.1f})")
        if self.accept_length is not None:
            parts.append(f"accept_len {self.accept_length.mean:.2f}")
        if self.step_ms is not None:
            parts.append(f"a step {self.step_ms.mean:.1f} ms")
        expected = f"predicted {', '.join(parts)}; " if parts else ""
        return f"{expected}starts: {100 * self.p_start:.0f} %"

    @property
    def remaining_text(self) -> str:
        """What is left to gain, in words; empty when that is not known."""
        if self.remaining_pct is None:
            return ""
        return f"no untested configuration is expected to bring more than {self.remaining_pct:.2f} %"
