"""`specsweep report`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sweeper import config
from sweeper.engines.registry import simplicity_of
from sweeper.errors import ConfigError, ExitCode
from sweeper.spec import StudyPlace
from sweeper.storage import StudyStore

if TYPE_CHECKING:
    from analysis.blocks import Document
    from analysis.reading import Reading

_FORMATS = (".html", ".md")


def report(arguments: argparse.Namespace) -> ExitCode:
    """Write the report of a study, or of several beside one another; `output` "-" prints it as Markdown.

    Without `output` both kinds are written beside the study, and their paths printed.
    """
    output = arguments.output
    if output not in (None, "-") and Path(output).suffix not in _FORMATS:
        raise ConfigError([f"--output: {output!r} must end with .html or .md, or be - (print as Markdown)"])
    place = config.load_place(arguments.overrides, arguments.config_dir)
    document = _document(place, arguments.others)
    from analysis.page.html import html  # loads pandas and templates, which no other command needs
    from analysis.page.markdown import markdown
    from analysis.report import write

    if output == "-":
        sys.stdout.write(markdown(document))
        return ExitCode.OK
    stem = Path(place.study.dir) / f"{place.study.name}-{'comparison' if arguments.others else 'report'}"
    for path in [Path(output)] if output else [stem.with_name(stem.name + suffix) for suffix in _FORMATS]:
        text = html(document) if path.suffix == ".html" else markdown(document)
        sys.stdout.write(f"{write(text, path)}\n")
    return ExitCode.OK


def _document(place: StudyPlace, others: list[str]) -> Document:
    """The report of the study at `place`, or its comparison with the others."""
    from analysis.comparing.document import comparison
    from analysis.diagnosis import findings_of
    from analysis.report import document

    first = _read(StudyStore.of(place.study), place.engine_name)
    if not others:
        return document(first, findings_of(first))
    return comparison([first, *(_other(place, text) for text in others)])


def _other(place: StudyPlace, text: str) -> Reading:
    """The study that `--with` names: of the same storage, of a folder's, or of another database's."""
    where, colon, name = text.rpartition(":")
    storage, folder = place.study.storage, place.study.dir
    if "://" in where:
        storage = where
    elif colon:
        storage, folder = f"sqlite:///{where}/optuna.db", where
    try:
        if not colon:
            return _read(StudyStore.of(place.study, name=name), place.engine_name)
        return _read(StudyStore.open(storage, name, folder, create=False), place.engine_name)
    except ConfigError as error:
        shown = f"...:{name}" if "://" in where else text  # an address may hold a password
        raise ConfigError([f"--with {shown}: {line}" for line in error.mistakes]) from error


def _read(store: StudyStore, engine_name: str) -> Reading:
    """What one study holds."""
    from analysis.reading import read

    stored = store.fact("fingerprint") or {}
    return read(store, simplicity_of(stored.get("engine.name", engine_name)))
