"""Kill a real sweep with SIGKILL at random moments, again and again, and count what was lost.

`python -m tests.sweep.campaign --kills 20` prints the figures.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sweeper.records import TrialState
from tests.sweep.runner import SweepFolder, finish, wait_until

MANY = "budget.trials=500"


@dataclass(frozen=True)
class Figures:
    """What the campaign saw. `lost`: finished trials whose key or value changed or that vanished."""

    kills: int
    trials: int
    lost: int
    duplicated: int
    servers_left: int
    unfinished: int
    runs: int
    where: dict[str, int]

    def lines(self) -> str:
        moments = ", ".join(f"{name} {count}" for name, count in sorted(self.where.items()))
        return (
            f"kills {self.kills} (killed in: {moments})\n"
            f"trials {self.trials}, finished trials lost {self.lost}, duplicated {self.duplicated}, "
            f"left unfinished {self.unfinished}, servers left {self.servers_left}, MLflow runs {self.runs}"
        )


def campaign(folder: SweepFolder, kills: int, seed: int) -> Figures:
    """`kills` times: start or continue the sweep, kill it at a random moment. Then let it end in peace."""
    rng = random.Random(seed)
    seen: dict[int, tuple[str, float | None]] = {}
    lost = 0
    where: Counter[str] = Counter()
    for _ in range(kills):
        process = folder.sweep(MANY)
        if rng.random() < 0.2:
            time.sleep(rng.uniform(0.2, 4.0))  # while it starts
        else:
            wait_until(lambda: bool(folder.servers()), process, "a server")
            time.sleep(rng.uniform(0.0, 10.0))  # in its first launch, or in one that follows, or between them
        os.kill(process.pid, signal.SIGKILL)
        finish(process)
        where["a launch" if folder.servers() else "between launches"] += 1
        now = folder.finished()
        lost += sum(1 for number, kept in seen.items() if now.get(number) != kept)
        seen = now
    last = finish(folder.sweep(f"budget.trials={len(folder.trials()) + 2}"))
    assert last.code == 0, last.output
    trials = folder.trials()
    now = folder.finished()
    lost += sum(1 for number, kept in seen.items() if now.get(number) != kept)
    return Figures(
        kills=kills,
        trials=len(trials),
        lost=lost,
        duplicated=len(trials) - len({trial.key for trial in trials}),
        servers_left=len(folder.servers()),
        unfinished=sum(trial.state is TrialState.RUNNING for trial in trials),
        runs=len(folder.runs()),
        where=dict(where),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        print(campaign(SweepFolder(Path(directory)), arguments.kills, arguments.seed).lines())


if __name__ == "__main__":
    main()
