"""specsweep's own time per trial: what passes between two launches that is neither server nor benchmark.

`make bench` runs a small real sweep in a folder of its own and prints the figures; `--study DIR NAME` reads a
finished study instead. Own time of a trial = the moment the next launch starts - the moment this one started - its
phases (server start, warm-up, benchmark, server stop): the proposal, the record, the tell, MLflow, the view.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

from sweeper.records import LaunchRecord, duration_s
from sweeper.storing.storage import StudyStore
from tests.sweep.runner import SweepFolder

SERVER_TIME = ("start", "warmup", "benchmark", "stop")
"""The phases that are the server's and the measurement's; `check` and all else is specsweep's own."""


def own_times(launches: list[LaunchRecord]) -> list[tuple[float, float]]:
    """(own seconds, whole seconds) of every launch that another one followed in the same process."""
    ordered = sorted(launches, key=lambda launch: launch.started_at)
    found = []
    for launch, following in pairwise(ordered):
        whole = duration_s(launch.started_at, following.started_at)
        spent = sum(phase.duration_s for phase in launch.phases if phase.name in SERVER_TIME)
        found.append((whole - spent, whole))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument(
        "--study", nargs=2, metavar=("DIR", "NAME"), help="read this study; it must have run in one go"
    )
    arguments = parser.parse_args()
    if arguments.study:
        directory, name = arguments.study
        report(StudyStore.open(f"sqlite:///{directory}/optuna.db", name, directory, create=False))
        return
    with tempfile.TemporaryDirectory() as directory:
        folder = SweepFolder(Path(directory))
        outcome = folder.run(f"budget.trials={arguments.trials}")
        if outcome.code != 0:
            raise SystemExit(outcome.output)
        report(folder.store())


def report(store: StudyStore) -> None:
    """Print the figures of one study."""
    launches = [launch for trial in store.trials() for launch in trial.launches]
    times = own_times(launches)
    own, whole = [own for own, _ in times], [whole for _, whole in times]
    share = 100 * sum(own) / sum(whole)
    print(f"study {store.name}: {len(own)} launches")
    print(
        f"own time per launch: median {statistics.median(own):.3f} s, min {min(own):.3f} s, max {max(own):.3f} s"
    )
    print(f"a launch takes:      median {statistics.median(whole):.1f} s; own time is {share:.1f} % of it")


if __name__ == "__main__":
    main()
