"""How long the phases of launches took, to say how long the present one may take. Pure."""

from __future__ import annotations

import statistics


class PhaseTimes:
    """Times phases from one to the next, under their names. Moments are of a clock's `monotonic_s`."""

    def __init__(self) -> None:
        self.name = ""
        self._began_s = 0.0
        self._took: dict[str, list[float]] = {}

    def enter(self, name: str, at_s: float) -> None:
        """A phase has begun, and the one before has ended. One that is told again goes on."""
        if name == self.name:
            return
        self.leave(at_s)
        self.name, self._began_s = name, at_s

    def leave(self, at_s: float) -> None:
        """The phase has ended, and none has begun."""
        if self.name:
            self._took.setdefault(self.name, []).append(at_s - self._began_s)
        self.name = ""

    def elapsed_s(self, at_s: float) -> float:
        """Seconds in the present phase."""
        return max(0.0, at_s - self._began_s) if self.name else 0.0

    @property
    def expected_s(self) -> float | None:
        """The median of what this phase took before, in this process; None the first time."""
        took = self._took.get(self.name)
        return statistics.median(took) if took else None
