"""Published measurements as small servers: each cell of a table is one model on one machine under one load."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TABLES = Path(__file__).parents[2] / "data" / "response_tables"
BASELINE_DRAFT = "Wihtout EAGLE3"
"""How SpecBundle's table spells a run without speculation."""
FEWEST = 4
"""Speculative configurations that a cell needs: with three there is nothing to choose after three."""

Shape = tuple[int, int, int]
"""num_steps, topk, draft_tokens."""


@dataclass(frozen=True)
class Measured:
    """throughput in tok/s; accept_length where it was published."""

    throughput: float
    accept_length: float | None = None


@dataclass(frozen=True)
class Cell:
    """One model, drafter, machine and load. baseline: tok/s without speculation, where it was published."""

    table: str
    name: str
    shapes: Mapping[Shape, Measured]
    baseline: float | None = None

    @property
    def best(self) -> float:
        """Tok/s of the fastest speculative configuration."""
        return max(found.throughput for found in self.shapes.values())


def cells() -> list[Cell]:
    """All cells with enough configurations, table by table."""
    found = [*_specbundle(), *_autospec(), *_specforge()]
    return [cell for cell in found if len(cell.shapes) >= FEWEST]


def _specbundle() -> Iterator[Cell]:
    """SpecBundle: ten models under SGLang with EAGLE-3, five shapes each; by model, benchmark and drafter."""
    drafts: dict[tuple[str, str, str], dict[Shape, Measured]] = {}
    baselines: dict[tuple[str, str], float] = {}
    for row in _rows("specbundle_sglang_eagle3.csv"):
        where = (row["model"], row["benchmark"])
        if row["draft"] == BASELINE_DRAFT:
            baselines[where] = float(row["output_tok_s"])
        else:
            shapes = drafts.setdefault((*where, row["draft"]), {})
            shapes[_shape(row)] = Measured(float(row["output_tok_s"]), float(row["accept_len"]))
    for (model, benchmark, draft), shapes in drafts.items():
        yield Cell("specbundle", f"{model}, {benchmark}, {draft}", shapes, baselines.get((model, benchmark)))


def _autospec() -> Iterator[Cell]:
    """Chains of one to six steps under growing batches; no accept_length, no baseline."""
    found: dict[str, dict[Shape, Measured]] = {}
    for row in _rows("autospec_pr22246.csv"):
        if row["num_steps"].isdecimal() and row["output_tok_s"]:
            name = f"{row['model']}, batch {row['batch_size']}"
            found.setdefault(name, {})[_shape(row)] = Measured(float(row["output_tok_s"]))
    for name, shapes in found.items():
        yield Cell("autospec", name, shapes)


def _specforge() -> Iterator[Cell]:
    """One model under growing batches, chains and trees."""
    found: dict[str, dict[Shape, Measured]] = {}
    for row in _rows("specforge_issue339_qwen3_30b_a3b.csv"):
        measured = Measured(float(row["output_tok_s"]), float(row["accept_len"]))
        found.setdefault(f"batch {row['batch_size']}", {})[_shape(row)] = measured
    for name, shapes in found.items():
        baseline = shapes.pop((0, 0, 0), None)
        yield Cell("specforge", name, shapes, baseline.throughput if baseline else None)


def _shape(row: Mapping[str, str]) -> Shape:
    return int(row["num_steps"]), int(row["topk"]), int(row["num_draft_tokens"])


def _rows(name: str) -> list[dict[str, str]]:
    with (TABLES / name).open(newline="") as file:
        return list(csv.DictReader(file))
