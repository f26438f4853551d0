"""Published tables, imported: whose winner does the imported study name, and what does the diagnosis say of it?

    python -m tests.bench.published [--cells N]

Each cell (one model, benchmark and drafter, or one batch size) is written as a CSV with the table's own columns
and imported by `specsweep import`'s own code; what is counted is read back from the study.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.diagnose import Finding, findings
from sweeper.importing.importer import Options, add_results, read_files, understood_files
from sweeper.records import TrialRecord
from sweeper.spec import StudySpec
from tests.bench.search.published import BASELINE_DRAFT, TABLES, Cell, cells
from tests.bench.search.tables import as_markdown

COLUMNS = ("draft", "num_steps", "topk", "num_draft_tokens", "output_tok_s", "accept_len")
SHAPE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


@dataclass(frozen=True)
class Outcome:
    """What an imported cell says. `winner_kept`: the published winner leads. `in_tie`: it is among the equals, if
    any are named. `gain`: the best one's throughput over the baseline's, where that was published."""

    table: str
    winner_kept: bool
    has_tie: bool
    in_tie: bool
    gain: float | None
    rules: frozenset[str]


def main() -> None:
    """Import every cell and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=0, help="only so many; 0: all")
    asked = parser.parse_args()
    winners = dict(_published_winners())
    found = cells()[: asked.cells or None]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [_outcome(Path(folder), index, cell, winners) for index, cell in enumerate(found)]
    print(summary(outcomes))


def summary(outcomes: Sequence[Outcome]) -> str:
    """A row per table, and one for all."""
    head = (
        "table", "cells", "published winner leads", "not told from others", "then among the equals",
        "with baseline", "faster than it", "break-even told", "drafter is the limit",
    )  # fmt: skip
    tables = list(dict.fromkeys(one.table for one in outcomes))
    rows = [_row(name, [one for one in outcomes if one.table == name]) for name in tables]
    return as_markdown(head, [*rows, _row("all", outcomes)])


def _row(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    tied = [one for one in outcomes if one.has_tie]
    based = [one for one in outcomes if one.gain is not None]
    return [
        name,
        str(len(outcomes)),
        _share([one.winner_kept for one in outcomes]),
        _share([one.has_tie for one in outcomes]),
        _share([one.in_tie for one in tied]),
        str(len(based)),
        _share([(one.gain or 0) > 1 for one in based]),
        _share(["break_even" in one.rules for one in based]),
        _share([bool({"draft_limit", "step_limit"} & one.rules) for one in based]),
    ]


def _share(flags: Sequence[bool]) -> str:
    return f"{100 * sum(flags) / len(flags):.0f} % of {len(flags)}" if flags else "–"


def _outcome(folder: Path, index: int, cell: Cell, winners: dict[str, str]) -> Outcome:
    place = StudySpec(
        name=f"cell-{index}", dir=str(folder), storage=f"sqlite:///{folder}/optuna.db", seed=0, startup_trials=1
    )
    options = Options(fixed={"speculative_algorithm": "EAGLE3"}, baseline=("draft", BASELINE_DRAFT))
    outcome = add_results(understood_files(read_files([_written(folder, index, cell)]), options), place)
    assert outcome.study is not None
    trials, objective = outcome.study.trials(), outcome.study.objective
    told = {one.rule: one for one in findings(trials, objective, "sglang")}
    drafting = [trial for trial in trials if not trial.is_baseline]
    best = max(drafting, key=lambda trial: trial.mean(objective) or 0.0)
    published = winners.get(cell.name) or _shape_text(max(cell.shapes, key=lambda s: cell.shapes[s].throughput))
    base = trials[0].mean(objective) if trials[0].is_baseline else None
    return Outcome(
        table=cell.table,
        winner_kept=_shape_of(best) == published,
        has_tie="equals" in told,
        in_tie=_is_among(told.get("equals"), drafting, published, best),
        gain=(best.mean(objective) or 0.0) / base if base else None,
        rules=frozenset(told),
    )


def _is_among(tie: Finding | None, trials: Sequence[TrialRecord], published: str, best: TrialRecord) -> bool:
    if tie is None:
        return False
    numbers = {best.number, *(number for one in tie.evidence for number in one.trials)}
    return any(_shape_of(trial) == published for trial in trials if trial.number in numbers)


def _written(folder: Path, index: int, cell: Cell) -> Path:
    """The cell as a file of results."""
    path = folder / f"cell-{index}.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        if cell.baseline is not None:
            writer.writerow([BASELINE_DRAFT, 0, 0, 0, cell.baseline, ""])
        for shape, seen in cell.shapes.items():
            writer.writerow(["e3", *shape, seen.throughput, seen.accept_length or ""])
    return path


def _published_winners() -> Iterator[tuple[str, str]]:
    """SpecBundle's cells and the configuration that is published as their fastest one."""
    with (TABLES / "specbundle_derived_winners.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            yield f"{row['model']}, {row['benchmark']}, {row['draft']}", row["best_cfg"]


def _shape_of(trial: TrialRecord) -> str:
    return "_".join(str(trial.requested.flags.get(name)) for name in SHAPE)


def _shape_text(shape: tuple[int, int, int]) -> str:
    return "_".join(map(str, shape))


if __name__ == "__main__":
    main()
