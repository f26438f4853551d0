"""`specsweep report`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sweeper import config
from sweeper.engines.registry import simplicity_of
from sweeper.errors import ExitCode
from sweeper.storage import StudyStore


def report(arguments: argparse.Namespace) -> ExitCode:
    """Write the report of a study, or print it when `output` is "-"."""
    from analysis.report import markdown, write  # loads pandas, which no other command needs

    place = config.load_place(arguments.overrides, arguments.config_dir)
    store = StudyStore.of(place.study)
    stored = store.fact("fingerprint") or {}
    simplicity = simplicity_of(stored.get("engine.name", place.engine_name))
    output = arguments.output
    if output == "-":
        sys.stdout.write(markdown(store, simplicity))
        return ExitCode.OK
    target = Path(output) if output else Path(place.study.dir) / f"{place.study.name}-report.md"
    sys.stdout.write(f"{write(store, simplicity, target)}\n")
    return ExitCode.OK
