"""The report of a study as Markdown: what to run, how sure that is, and what it is drawn from.

Written from the study alone, at any time: while the sweep runs, when it has just begun, when everything failed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from analysis import details, restarts, results, tables
from analysis.reading import Reading, read
from sweeper.storage import StudyStore
from sweeper.verdict import Simplicity

SECTIONS = (
    results.title,
    results.verdict,
    results.comparison,
    tables.ranked,
    restarts.accept_definitions,
    tables.prompts,
    restarts.proofs,
    details.costs,
    details.failures,
    details.surprises,
    restarts.rewrites,
    details.command,
    details.provenance,
    details.raw_data,
)
"""In the order in which they are read. A section is lines of Markdown; none when there is nothing to say."""


def markdown(store: StudyStore, simplicity: Simplicity) -> str:
    """The report. Raises SpecsweepError when a stored record cannot be read."""
    return render(read(store, simplicity))


def render(reading: Reading) -> str:
    """The report of what has been read."""
    blocks = ["\n".join(lines) for section in SECTIONS if (lines := section(reading))]
    return "\n\n".join(blocks) + "\n"


def write(store: StudyStore, simplicity: Simplicity, path: Path) -> Path:
    """Write the report to `path`, whole or not at all, and return it. Raises OSError when that cannot be done."""
    text = markdown(store, simplicity)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path
