"""Writes docs/faults.md from the outcomes of the last plays of all rows, and from the strikes that were kept.

`python -m tests.chaos.written FOLDER ...`: the folders of runs, oldest first.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.chaos.kills import KINDS
from tests.chaos.kinds import all_rows

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
HEAD = """# What was broken on purpose

Written by `make chaos` from its last run: do not edit. Each row breaks something in a small sweep on real parts
(the real loop, processes, sshd, PostgreSQL, MLflow; the inference server is a stand-in), then lets the next start
go on. Besides what a row says it is always checked that no finished launch or trial is lost or changed, none is
there twice, no process is left, no lock is held, no trial is unfinished, MLflow has one run for each trial with
the same values, and the exit code is the documented one.

`python -m tests.chaos --only WORD --kills 0` plays single rows. A row that a machine cannot play says why (a small
file system and a boot id of one's own need root). Faults of the engine alone, on SGLang's process tree:
`python -m tests.sglang.faults`.

"""


def table(outcomes: Iterable[dict[str, Any]]) -> str:
    """The rows, with neither dates nor durations: the page changes only when an outcome does."""
    last = {done["fault"]: done for done in outcomes}
    lines = ["| | fault | strikes | made by | expected | seen | as expected |", "|---:|---|---|---|---|---|---|"]
    for number, name in enumerate((row.name for row in all_rows() if row.name in last), start=1):
        done = last[name]
        seen = steady(done["missing"] or "; ".join(done["seen"]))
        cells = (name, done["where"], done["how"], done["expected"], seen, done["mark"])
        lines.append(f"| {number} | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


CHANGING = (
    (r"/[^ ']*/rows/row-\d+", "FOLDER"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\+\d\d:\d\d)?", "TIME"),
    (r"(127\.0\.0\.1|gpu\.test):\d+", r"\1:PORT"),
    (r'(port|pid|says ")( ?)\d+\b', r"\1\2N"),
    (r"\b[0-9a-f]{16}\b", "ID"),
    (r"chaos_\d+", "chaos"),
    (r"after \d+ s", "after N s"),
    (r"still ends in \d+ min", "still ends in N min"),
)
"""What is another one in each run."""


def steady(text: str) -> str:
    """What was seen, without what says nothing about it."""
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text)
    return text


def kills(strikes: Sequence[dict[str, Any]]) -> str:
    """How often each sweep was struck by what, and at how many boundaries."""
    counts = Counter((strike["sweep"], strike["kind"]) for strike in strikes)
    heads = ["sweep", *KINDS, "all", "at boundaries", "different ones"]
    sweeps = list(dict.fromkeys(strike["sweep"] for strike in strikes))
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for sweep in sweeps:
        at = [strike["at"] for strike in strikes if strike["sweep"] == sweep and strike["at"] != "random"]
        numbers = [counts[sweep, kind] for kind in KINDS]
        lines.append(f"| {sweep} | {' | '.join(map(str, [*numbers, sum(numbers), len(at), len(set(at))]))} |")
    total = [sum(counts[sweep, kind] for sweep in sweeps) for kind in KINDS]
    at = [strike["at"] for strike in strikes if strike["at"] != "random"]
    lines.append(f"| all | {' | '.join(map(str, [*total, sum(total), len(at), len(set(at))]))} |")
    return "\n".join(lines) + "\n"


def lines_of(paths: Iterable[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def write_page(folders: Sequence[Path], page: Path = PAGE) -> None:
    """Write the page anew."""
    outcomes = lines_of(path for folder in folders for path in sorted(folder.rglob("outcomes.jsonl")))
    strikes = lines_of(path for folder in folders for path in sorted(folder.rglob("strikes.jsonl")))
    text = HEAD + table(outcomes)
    if strikes:
        text += f"\n## Random kills\n\n{WORDS}\n{kills(strikes)}"
    page.write_text(text, encoding="utf-8")


WORDS = """\
Each sweep is started again after each strike, and ended in peace. A boundary is a line of the main path, or of
what it writes with: the command strikes itself just before that line. All others come at a random moment. At
the end the same is checked as above. `python -m tests.chaos --rows 0 --kills 300 --seed 1` strikes again.
"""

if __name__ == "__main__":
    write_page([Path(word) for word in sys.argv[1:]])
