"""What the bench keeps of each run: one line of JSON, so that tables can be printed without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sweeper.samplers.physics.stopping import LEAST_TRIALS, RUNNING

RESULTS = Path(__file__).with_name("results.jsonl")
"""The committed results, on the development seeds."""


class RunKey(NamedTuple):
    """What tells one run from all others."""

    method: str
    wrong: float
    seed: int
    repeat: int


class Foretold(NamedTuple):
    """Forecasts of one run: measured ones, those whose interval held what was measured, the median miss in %."""

    num_told: int
    num_inside: int
    miss_pct: float


@dataclass(frozen=True)
class Run:
    """One method on one simulated server.

    shares: after each restart, the true throughput of the configuration that would be named, as a share of the
        best there is; 0 before anything started.
    gains_pct: the remaining gain that the sampler showed before each restart, in percent; empty if it shows none.
    stops_after: the number of restarts after which the stopping rule would have ended the night; None: never.
    """

    method: str
    wrong: float
    seed: int
    repeat: int
    regime: str
    quality: str
    baseline_is_best: bool
    num_failures: int
    shares: tuple[float, ...]
    gains_pct: tuple[float | None, ...] = ()
    stops_after: int | None = None
    foretold: Foretold | None = None

    @property
    def key(self) -> RunKey:
        """What tells it from all others."""
        return RunKey(self.method, self.wrong, self.seed, self.repeat)

    def regret_pct(self, restarts: int) -> float:
        """What the configuration named after so many restarts is slower than the best, in percent."""
        return 100 * (1 - self.shares[min(restarts, len(self.shares)) - 1])

    def restarts_to(self, regret_pct: float) -> int | None:
        """After how many restarts one is first named that is no more than so much slower; None: never."""
        for restarts in range(1, len(self.shares) + 1):
            if self.regret_pct(restarts) <= regret_pct:
                return restarts
        return None

    def stops_below(self, least_gain_pct: float) -> int | None:
        """After how many restarts the stopping rule would have ended the night at this threshold; None: never."""
        for restarts in range(LEAST_TRIALS, len(self.gains_pct) + 1):
            latest = [gain for gain in self.gains_pct[:restarts] if gain is not None][-RUNNING:]
            if len(latest) == RUNNING and max(latest) < least_gain_pct:
                return restarts
        return None


def to_line(run: Run) -> str:
    """One line of JSON; equal shares in a row are written once, with their number."""
    values = asdict(run)
    values["shares"] = [[share, len(list(group))] for share, group in groupby(run.shares)]
    return json.dumps(values, separators=(",", ":"))


def from_line(line: str) -> Run:
    """The inverse of `to_line`. Raises ValueError for a line with other names."""
    values = json.loads(line)
    if set(values) != {field.name for field in fields(Run)}:
        raise ValueError(f"not a run of this bench: {line[:80]}")
    values["shares"] = tuple(share for share, count in values["shares"] for _ in range(count))
    values["gains_pct"] = tuple(values["gains_pct"])
    values["foretold"] = values["foretold"] and Foretold(*values["foretold"])
    return Run(**values)


def load(path: Path) -> list[Run]:
    """All runs of a file, none twice (the last one counts); empty if there is no file.

    A last line without its end was cut off by a kill, and is not a run.
    """
    if not path.exists():
        return []
    runs = (from_line(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n"))
    return list({run.key: run for run in runs}.values())


def append(path: Path, runs: Iterable[Run]) -> None:
    """Add runs one by one, each on disk before the next is asked for: an interrupted bench goes on from there."""
    with path.open("a") as file:
        for run in runs:
            file.write(to_line(run) + "\n")
            file.flush()


def write(path: Path, runs: Sequence[Run]) -> None:
    """Replace the file."""
    path.write_text("".join(to_line(run) + "\n" for run in sorted(runs, key=lambda run: run.key)))
