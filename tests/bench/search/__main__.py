"""How many restarts a sampler needs: `run` on simulated servers, `table` of runs, `replay`, `real`, `time`.

`run` goes on where it was interrupted. Samplers are set on the seeds 100 to 159 and compared on 0 to 39; to judge
one, take others:

    python -m tests.bench.search run --seeds 1000 1040 --file judged.jsonl
    python -m tests.bench.search table --file judged.jsonl
"""

from __future__ import annotations

import argparse
from pathlib import Path

import optuna

from tests.bench.search import real, real_servers, results, tables
from tests.bench.search.choosers import CHOOSERS
from tests.bench.search.harness import DEVELOPMENT, missing, run_all
from tests.bench.search.methods import METHODS, installed
from tests.bench.search.proposal_time import measured
from tests.bench.search.published import cells
from tests.bench.search.replay import by_chance, replay, summary
from tests.bench.search.results import RESULTS

MAIN = ("random", "grid", "tpe", "tpe_constraints", "gp", "smac", "one_factor", "ours", "ours_all_reduce")
ABLATIONS = ("ours_no_histogram", "ours_no_accept_length", "ours_no_failures")
WRONG = ("random", "tpe", "tpe_constraints", "one_factor", "ours")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run", help="run what the file does not have yet")
    running.add_argument("--methods", nargs="+", choices=METHODS, help="instead of those of the tables")
    running.add_argument(
        "--wrong", nargs="+", type=float, default=[0.0, 0.3, 1.0], help="how wrong the physics is"
    )
    running.add_argument("--seeds", nargs=2, type=int, default=[DEVELOPMENT.start, DEVELOPMENT.stop])
    running.add_argument("--repeats", type=int, default=1, help="of each server")
    running.add_argument("--processes", type=int, choices=(1, 2), default=1)
    running.add_argument("--again", action="store_true", help="forget earlier runs of these methods")
    running.set_defaults(do=_run)
    printing = commands.add_parser("table", help="print the tables of a file of results")
    printing.set_defaults(do=_table)
    for command in (running, printing):
        command.add_argument("--file", type=Path, default=RESULTS, help="of results (default: the committed one)")
    replaying = commands.add_parser("replay", help="choose among the configurations of published tables")
    replaying.add_argument("--repeats", type=int, default=3, help="of each cell")
    replaying.set_defaults(do=_replay)
    on_real = commands.add_parser("real", help="real servers whose whole space was measured")
    on_real.add_argument("--repeats", type=int, default=30)
    on_real.set_defaults(do=_real)
    timing = commands.add_parser("time", help="how long a proposal takes on this machine")
    timing.add_argument("--methods", nargs="+", choices=METHODS, default=["tpe_constraints", "ours"])
    timing.set_defaults(do=_time)
    arguments = parser.parse_args()
    arguments.do(arguments)


def _run(arguments: argparse.Namespace) -> None:
    seeds = range(*arguments.seeds)
    if arguments.file == RESULTS and not set(seeds) <= set(DEVELOPMENT):
        raise SystemExit("the committed results are of the development seeds: name a --file for others")
    forgotten = (arguments.methods or METHODS) if arguments.again else ()
    results.write(arguments.file, [run for run in results.load(arguments.file) if run.method not in forgotten])
    for wrong in arguments.wrong:
        chosen = arguments.methods or (WRONG if wrong else (*MAIN, *ABLATIONS))
        methods = [method for method in chosen if installed(method)]
        if left_out := set(chosen) - set(methods):
            print(f"not installed here, left out: {', '.join(sorted(left_out))}")
        wanted = missing(arguments.file, methods, seeds, wrong, arguments.repeats)
        results.append(arguments.file, run_all(wanted, arguments.processes))
    results.write(arguments.file, results.load(arguments.file))


def _table(arguments: argparse.Namespace) -> None:
    order = {method: place for place, method in enumerate(METHODS)}
    runs = sorted(results.load(arguments.file), key=lambda run: order[run.method])
    print(f"{len(runs)} runs of {len(runs[0].shares)} restarts\n")
    for title, table in (
        ("Restarts", tables.comparison(runs)),
        ("Where the best is a baseline", tables.baseline_is_best(runs)),
        ("The stopping rule", tables.stopping(runs)),
        ("The forecasts", tables.forecasts(runs)),
        ("Where the physics is wrong", tables.wrong_physics(runs)),
    ):
        print(f"{title}\n\n{table}\n")


def _replay(arguments: argparse.Namespace) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = [chance for cell in cells() for chance in by_chance(cell)]
    for name, make in CHOOSERS.items():
        found += [replay(cell, name, make, seed) for cell in cells() for seed in range(arguments.repeats)]
    print(summary(found))


def _real(arguments: argparse.Namespace) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for server in (real_servers.llamacpp(), real_servers.sglang(ngrams=False), real_servers.sglang()):
        methods = real.methods_of(server)
        nights = [real.replay(server, name, seed) for name in methods for seed in range(arguments.repeats)]
        print(f"{server.name}, {len(server.measured)} configurations\n\n{real.summary(nights)}\n")


def _time(arguments: argparse.Namespace) -> None:
    print(measured(tuple(arguments.methods), (200, 2000), num_proposals=3))


if __name__ == "__main__":
    main()
