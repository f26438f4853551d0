"""How long it takes until the trial of a dead worker is taken over, with a lease as configured.

`python -m tests.chaos.takeover --times 5` kills one in mid-launch, so often, at once in studies of their own.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from pathlib import Path

from sweeper.spec import StudySpec
from tests.fleet.crew import Fleet
from tests.fleet.postgres import cluster


def taken_over_after_s(fleet: Fleet, wait_s: float) -> float:
    """Kill a worker in mid-launch, `wait_s` after another one began to wait; until that one has its trial."""
    dying = fleet.start("a", launch_s=90)
    dying.wait_for("launch 1 0 search")  # not the baseline: each host measures its own
    other = fleet.start("b")
    other.wait_for("note: waiting: ")
    time.sleep(wait_s)
    dying.kill()
    began = time.monotonic()
    other.wait_for(r"note: trial \d+ is taken over from host a")
    seconds = time.monotonic() - began
    other.end()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--lease", type=float, default=StudySpec.model_fields["lease_s"].default)
    arguments = parser.parse_args()
    rng, seen = random.Random(1), list[float]()

    def once(url: str, folder: Path, wait_s: float) -> None:
        seen.append(taken_over_after_s(Fleet(url, folder, trials=2, lease_s=arguments.lease), wait_s))

    with cluster() as server, tempfile.TemporaryDirectory() as name:
        crew = []
        for number in range(arguments.times):
            folder = Path(name) / str(number)
            folder.mkdir()
            waits = rng.uniform(0, arguments.lease / 4)
            crew.append(threading.Thread(target=once, args=(server.create(f"s{number}"), folder, waits)))
            crew[-1].start()
        for thread in crew:
            thread.join()
    print(f"lease {arguments.lease:g} s: taken over after {', '.join(f'{s:.1f}' for s in sorted(seen))} s")


if __name__ == "__main__":
    main()
