"""The report of a study: what to run, how sure that is, why, and what it is drawn from.

Made from the study alone, at any time: while the sweep runs, when it has just begun, when everything failed.
Here as data; page/ writes it as HTML that needs nothing beside itself, and as Markdown with the same content.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from analysis.blocks import Document, Section
from analysis.reading import Reading
from analysis.sections import (
    all_reduce,
    doubts,
    effects,
    failures,
    gpus,
    hosts,
    launches,
    lossless,
    measuring,
    noise,
    pictures,
    predictions,
    prompts,
    provenance,
    ranking,
    reproducing,
    restarts,
    results,
    workloads,
)
from analysis.sections.definitions import definitions
from analysis.sections.findings import Finding, diagnosis

FIRST: Sequence[Callable[[Reading], Section | None]] = (results.verdict, results.comparison, prompts.prompts)
"""What is read before the findings of the diagnosis. A section is None when there is nothing to say."""

SECTIONS: Sequence[Callable[[Reading], Section | None]] = (
    ranking.ranked,
    hosts.hosts,
    workloads.workloads,
    effects.effects,
    pictures.drafts,
    pictures.best_so_far,
    launches.costs,
    failures.failures,
    restarts.rewrites,
    failures.surprises,
    lossless.lossless,
    noise.noise,
    gpus.gpus,
    doubts.doubts,
    reproducing.command,
    predictions.predictions,
    all_reduce.all_reduce,
    measuring.measuring,
    launches.purposes,
    restarts.proofs,
    provenance.provenance,
    reproducing.raw_data,
)
"""All others, in the order in which they are read."""


def document(reading: Reading, findings: Sequence[Finding] = ()) -> Document:
    """The report of what has been read. `findings`: what the diagnosis makes of it."""
    found = [*(part(reading) for part in FIRST), diagnosis(findings), *(part(reading) for part in SECTIONS)]
    sections = [section for section in found if section is not None]
    meaning = definitions(sections)
    return Document(results.title(reading), results.lead(reading), [*sections, *([meaning] if meaning else [])])


def write(text: str, path: Path) -> Path:
    """Write `text` to `path`, whole or not at all, and return it. Raises OSError when that cannot be done."""
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
