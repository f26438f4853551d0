"""Writes docs/fuzzing.md from what `make fuzz` kept: the last run of each parser.

`python -m tests.fuzz.written`
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.fuzz.campaign import Outcome

ROOT = Path(__file__).parents[2]
PAGE, KEPT = ROOT / "docs" / "fuzzing.md", ROOT / "build" / "fuzz.jsonl"
HEAD = """# What parsers were fed

Written by `python -m tests.fuzz.written` from the last runs of `make fuzz`: do not edit. Whatever reads
text from outside (a host, a server, a database, a file) is fed damaged variants of real answers: bits
flipped, pieces cut, doubled and swapped, numbers of thousands of digits, brackets nested thousands deep,
escape codes, NUL, what is not UTF-8. The same number is the same input everywhere. A parser may refuse an
input with the error that it is documented to raise. Everything else is a crash, and so are ten seconds
without an answer, or a result that no record can keep. `make fuzz ARGS='--only squeue'` feeds single ones;
a share of all of them is part of `make test`. What MLflow answers is fed to its own client, in two syncs of a
study for each input; what a host tells `doctor`, to every check that reads it.

"""
FOUND = """
## What was found

All of it is mended, and each kind of input stands as a test in `tests/fuzz/test_fuzz.py` or beside the
parser's own: 28 crashes, in what nvidia-smi and the supervisor say, token ids, stored studies, error
messages, what vLLM reports of itself and what MLflow's client makes of an answer, by numbers of thousands of
digits, brackets nested too deeply, a server's name that is none, infinite values, records of another shape, half
of a surrogate pair, and terminal codes.
"""


def keep(outcome: Outcome, file: Path = KEPT) -> None:
    """Add what became of a parser."""
    told = {**asdict(outcome), "crashes": list(outcome.crashes)}
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(told) + "\n")


def table(outcomes: Iterable[dict[str, Any]]) -> str:
    """The last run of each parser, and how many inputs all of them had."""
    last = {told["name"]: told for told in outcomes}
    lines = ["| parser | inputs | refused | crashes |", "|---|---:|---:|---:|"]
    lines += [row(name, [told]) for name, told in sorted(last.items())]
    return "\n".join([*lines, row(f"all {len(last)}", list(last.values()))]) + "\n"


def row(name: str, told: Sequence[dict[str, Any]]) -> str:
    """One line, the sum of these."""
    sums = (sum(each[key] for each in told) for key in ("num_inputs", "num_refused", "num_crashes"))
    return f"| {name} | {' | '.join(f'{number:,}' for number in sums)} |"


if __name__ == "__main__":
    PAGE.write_text(HEAD + table(map(json.loads, KEPT.read_text().splitlines())) + FOUND, encoding="utf-8")
