"""The report of a study as Markdown: what to run, how sure that is, and what it is drawn from.

Written from the study alone, at any time: while the sweep runs, when it has just begun, when everything failed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from analysis import (
    all_reduce,
    details,
    diagnosis,
    doubts,
    gpus,
    launches,
    lossless,
    measuring,
    noise,
    predictions,
    prompts,
    provenance,
    restarts,
    results,
    tables,
    workloads,
)
from analysis.definitions import definitions
from analysis.reading import Reading, read
from sweeper.deciding.verdict import Simplicity
from sweeper.storage import StudyStore

SECTIONS = (
    results.title,
    results.verdict,
    results.comparison,
    diagnosis.diagnosis,
    tables.ranked,
    predictions.predictions,
    all_reduce.all_reduce,
    restarts.accept_definitions,
    workloads.workloads,
    prompts.prompts,
    lossless.lossless,
    noise.noise,
    doubts.doubts,
    measuring.measuring,
    gpus.gpus,
    launches.purposes,
    restarts.proofs,
    launches.costs,
    details.failures,
    details.surprises,
    restarts.rewrites,
    details.command,
    provenance.provenance,
    details.raw_data,
)
"""In the order in which they are read. A section is lines of Markdown; none when there is nothing to say."""


def markdown(store: StudyStore, simplicity: Simplicity) -> str:
    """The report. Raises SpecsweepError when a stored record cannot be read."""
    return render(read(store, simplicity))


def render(reading: Reading) -> str:
    """The report of what has been read."""
    sections = [lines for section in SECTIONS if (lines := section(reading))]
    sections.append(definitions(line for lines in sections for line in lines))
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


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
