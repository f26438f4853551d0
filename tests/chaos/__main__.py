"""`python -m tests.chaos`: the fault table, then the random kills.

python -m tests.chaos --kills 0                      the whole table; docs/faults.md is written anew
python -m tests.chaos --rows 5 --kills 20            five rows and twenty kills: minutes
python -m tests.chaos --rows 0 --kills 300 --seed 1
python -m tests.chaos --kills 0 --only 'disk'        rows whose name contains a word
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from tests.chaos.kills import append, under_fire
from tests.chaos.kinds import all_rows
from tests.chaos.table import Outcome, Row, play_all
from tests.chaos.targets import TARGETS
from tests.chaos.written import write_page
from tests.chaos.zygote import Zygote


def kill_campaign(folder: Path, kills: int, seed: int, names: list[str]) -> int:
    """So many strikes, spread over the sweeps; the number of things that were wrong."""
    wrong, known = 0, set[str]()
    with Zygote() as zygote:
        for number, name in enumerate(names):
            share = kills // len(names) + (number < kills % len(names))
            place = folder / f"kills-{name}"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            began = time.monotonic()
            print(f"== {name}: {share} strikes, seed {seed + number}", flush=True)
            with TARGETS[name](place, zygote) as target:
                left = under_fire(target, share, seed + number, append(place / "strikes.jsonl"), known)
            found = [*left.wrong, *(f"exit code: {s}" for s in target.strikes if not s.is_expected)]
            struck = {strike.at for strike in target.strikes} - {"random"}
            known |= struck
            print(
                f"== {name}: {len(target.strikes)} strikes at {len(struck)} boundaries of {len(target.passed)}, "
                f"{left.trials} trials, {left.launches} launches, {time.monotonic() - began:.0f} s; "
                f"wrong: {found or 'nothing'}",
                flush=True,
            )
            wrong += len(found)
    return wrong


def chosen(arguments: argparse.Namespace) -> list[Row]:
    """The rows that were asked for: all, the first N, those whose name contains a word."""
    rows = [row for row in all_rows() if all(word in row.name for word in arguments.only)]
    rows = [row for row in rows if arguments.where in (None, row.where)]
    return rows if arguments.rows is None else rows[: arguments.rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="so many rows of the table; default: all")
    parser.add_argument("--only", nargs="*", default=[], help="rows whose name contains these words")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sweeps", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--folder", type=Path, default=Path("build/chaos"))
    parser.add_argument("--where", help="rows that strike this")
    parser.add_argument("--page", action="store_true", help="write docs/faults.md from all that the folder has")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    rows = chosen(arguments)
    outcomes: list[Outcome] = play_all(rows, folder / "rows", lambda line: print(line, flush=True)) if rows else []
    wrong = sum(bool(outcome.wrong) for outcome in outcomes)
    if arguments.kills:
        wrong += kill_campaign(folder, arguments.kills, arguments.seed, arguments.sweeps)
    if arguments.page and len(outcomes) == len(all_rows()):
        write_page([folder])
    print(f"{len(outcomes)} rows, seed {arguments.seed}; wrong: {wrong}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
