"""Executes the example notebook: `python -m tests.notebooks.written` writes it anew, with its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.notebooks.demo import make

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOK = FOLDER / "reading_a_study.ipynb"


def executed(folder: Path) -> Any:
    """The notebook after a run in `folder`, beside a new demo study."""
    make(folder / "demo")
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":  # warnings of the kernel's own name places of this machine
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    nbformat.write(executed(FOLDER), NOTEBOOK)  # type: ignore[no-untyped-call]
