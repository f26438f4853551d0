"""What studies of 100, 1,000 and 10,000 finished trials cost: `make bench-scale` (about ten minutes).

Each line is a process of its own that opens such a study and goes on with it for some launches, without a server.
Time on the clock, and the processor's time, which other processes lengthen less. Goals at 10,000 trials: start-up
15 s, own time 1.5 s per trial, status and studies 2 s, memory 700 MiB.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.bench.scale_study.builder import build, load
from tests.bench.scale_study.measuring import run_some

SIZES = (100, 1000, 10_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--samplers", nargs="+", default=("tpe", "physics"))
    parser.add_argument("--launches", type=int, default=10)
    parser.add_argument("--storage", default="", help="of PostgreSQL, empty; else SQLite in a temporary folder")
    parser.add_argument("--one", nargs=3, metavar=("DIR", "SAMPLER", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        directory, sampler, size = arguments.one
        needed = run_some(Path(directory), sampler, int(size), arguments.launches, arguments.storage)
        print(json.dumps(asdict(needed)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.sizes:
            report(Path(folder), size, arguments)


def report(folder: Path, size: int, arguments: argparse.Namespace) -> None:
    """Build one study and print what it costs."""
    made = folder / f"study-{size}"
    made.mkdir()
    build(load(made, size, "tpe", arguments.storage), size)
    for sampler in arguments.samplers:
        copy = folder / f"{size}-{sampler}"
        shutil.copytree(made, copy)
        options = ["--launches", str(arguments.launches), "--storage", arguments.storage]
        words = ["-m", "tests.bench.scale", "--one", str(copy), sampler, str(size), *options]
        needed = json.loads(called(words).splitlines()[-1])
        own, cpu = (statistics.median(needed[name]) for name in ("own_s", "own_cpu_s"))
        print(
            f"{size:>6} {sampler:8} start-up {needed['start_s']:6.1f} s (cpu {needed['start_cpu_s']:5.1f})  "
            f"own time {own:5.2f} s (cpu {cpu:5.2f})  memory {needed['peak_mib']:4.0f} MiB",
            flush=True,
        )
    place = [f"study.dir={made}", "study.name=night"]
    place += [f"study.storage={arguments.storage}"] if arguments.storage else []
    for command in ("status", "studies", "report"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        called(["-m", "sweeper", command, *place])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        print(f"{size:>6} {command:8} {time.perf_counter() - began:6.1f} s (cpu {cpu:5.1f})", flush=True)


def called(words: list[str]) -> str:
    return subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
