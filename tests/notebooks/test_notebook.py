"""The example notebook runs as it stands, and what it shows is what it would show now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from analysis import load
from sweeper.errors import ConfigError
from tests.notebooks.demo import make
from tests.notebooks.written import NOTEBOOK, executed


def stored() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def shown(notebook: Any) -> list[list[str]]:
    """What each code cell shows as text; pictures are not compared."""
    return [
        [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code" and not any("image/png" in o.get("data", {}) for o in cell.outputs)
    ]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_notebook_runs_and_its_outputs_are_current(tmp_path: Path) -> None:
    assert shown(executed(tmp_path)) == shown(stored())


def test_the_notebook_reads_a_study_in_three_lines_and_shows_something() -> None:
    notebook = stored()
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert len(first.source.splitlines()) == 3
    assert all(cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    assert "Traceback" not in NOTEBOOK.read_text(encoding="utf-8")


@pytest.mark.study
def test_a_study_is_loaded_as_tables(tmp_path: Path) -> None:
    make(tmp_path / "demo")
    study = load(tmp_path / "demo", "night")
    assert study.objective == "output_throughput"
    assert study.trials["rank"].iloc[0] == 1
    assert study.trials["number"].iloc[0] == study.verdict.advised == 4
    assert len(study.launches) == 12 + 3 * 2
    assert set(study.requests["prompt_id"]) == {"notice", "recipe"}
    assert repr(study) == "LoadedStudy(name='night')"


@pytest.mark.study
def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    make(tmp_path / "demo")
    with pytest.raises(ConfigError, match="its studies: night"):
        load(tmp_path / "demo", "other")
    with pytest.raises(ConfigError, match="does not exist"):
        load(tmp_path / "nowhere", "night")
