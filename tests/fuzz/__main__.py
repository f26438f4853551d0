"""`python -m tests.fuzz --inputs 100000`: feed every parser and print how it fared; exit code 1 after a crash.

What became of each is kept in build/fuzz.jsonl, from which docs/fuzzing.md is written (written.py).
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path

from launchers.errors import HostLost
from tests.fuzz.campaign import Outcome, feed
from tests.fuzz.doctor_answers import SEEDS, doctor_parser
from tests.fuzz.mlflow_answers import answer_parser, answer_seeds
from tests.fuzz.parsers import Parser, parsers
from tests.fuzz.written import keep

MAX_MEMORY = 4 * 1024**3


def main() -> int:
    options = argparse.ArgumentParser(prog="tests.fuzz")
    options.add_argument("--inputs", type=int, default=100_000)
    options.add_argument("--only", default="", help="parsers whose name holds this")
    asked = options.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        mlflow = Parser("MLflow: answers to two syncs", answer_parser(), answer_seeds())
        doctor = Parser("doctor: what a host tells", doctor_parser(), SEEDS, (HostLost,))
        chosen = [parser for parser in (*parsers(Path(folder)), mlflow, doctor) if asked.only in parser.name]
        print(f"{'parser':<40} {'inputs':>9} {'refused':>9} {'crashes':>8}", flush=True)
        outcomes = [show(feed(parser, asked.inputs)) for parser in chosen]
    crashes = sum(outcome.num_crashes for outcome in outcomes)
    print(f"{len(outcomes)} parsers, {sum(o.num_inputs for o in outcomes):,} inputs, {crashes} crashes")
    return 1 if crashes else 0


def show(outcome: Outcome) -> Outcome:
    figures = f"{outcome.num_inputs:>9} {outcome.num_refused:>9} {outcome.num_crashes:>8}"
    print(f"{outcome.name:<40} {figures}", flush=True)
    keep(outcome)
    for what, content in outcome.crashes.items():
        print(f"    {what}\n        {content[:300]!r}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
