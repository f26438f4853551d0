"""`specsweep report`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sweeper import config
from sweeper.commands.as_json import print_json
from sweeper.commands.screen import say_left_out
from sweeper.commands.writing import writing
from sweeper.engines.registry import simplicity_of
from sweeper.errors import ConfigError, ExitCode, StorageUnusable, Together
from sweeper.garbage import no_search_for_garbage
from sweeper.spec import STUDY_NAME, StudySpec
from sweeper.storing.storage import StudyStore
from sweeper.text import plain

if TYPE_CHECKING:
    from analysis.blocks import Document
    from analysis.reading import Reading

_FORMATS = (".html", ".md")


@no_search_for_garbage()
def report(arguments: argparse.Namespace) -> ExitCode:
    """Write the report of a study, or of several beside one another; `output` "-" prints it as Markdown.

    Without `output` both kinds are written beside the study, and their paths printed.
    """
    output, together = arguments.output, Together()
    if output not in (None, "-") and Path(output).suffix not in _FORMATS:
        together.mistakes.append(f"--output: {output!r} must end with .html or .md, or be - (print as Markdown)")
    if arguments.json and (arguments.others or output is not None):
        together.mistakes.append("--json: prints one study; --output and --with are for pages")
    with together:
        place = config.load_place(arguments.overrides, arguments.config_dir)
        readings = _readings(place.study, place.engine_name, arguments.others)
    together.tell()
    for reading in readings:
        say_left_out(reading.name, reading.damages)
    if arguments.json:
        from analysis.summary import summary

        print_json(summary(readings[0]))
        return ExitCode.OK
    document = _document(readings)
    if output == "-":
        from analysis.page.markdown import markdown

        sys.stdout.write(markdown(document))
        return ExitCode.OK
    beside = _paths(place.study, "comparison" if arguments.others else "report")
    for path in [Path(output)] if output else beside:
        with writing("--output" if output else "study.dir", path):
            _write(document, path)
        sys.stdout.write(f"{path}\n")
    return ExitCode.OK


@no_search_for_garbage()
def write_beside(study: StudySpec, engine_name: str) -> list[Path]:
    """Write the report of a study, both kinds, where `specsweep report` does; their paths, the page's first.

    Raises OSError when that cannot be done.
    """
    document = _document(_readings(study, engine_name, []))
    return [_write(document, path) for path in _paths(study, "report")]


def _paths(study: StudySpec, kind: str) -> list[Path]:
    return [Path(study.dir) / f"{study.name}-{kind}{suffix}" for suffix in _FORMATS]


def _write(document: Document, path: Path) -> Path:
    """The document in the format that the path's suffix names; the path."""
    from analysis.page.html import html  # loads pandas and templates, which other commands do without
    from analysis.page.markdown import markdown
    from analysis.report import write

    return write(html(document) if path.suffix == ".html" else markdown(document), path)


def _readings(study: StudySpec, engine_name: str, others: Sequence[str]) -> list[Reading]:
    """The study, then each that `--with` names. Raises ConfigError with what is wrong with any of them."""
    together = Together()
    readings: list[Reading] = []
    with together:
        readings.append(_read(StudyStore.of(study), engine_name))
    is_closed = any(line.startswith("study.storage:") for line in together.mistakes)
    for text in others:
        if is_closed and ":" not in text:
            together.mistakes.append(f"--with {text}: is looked for there, too; DIR:NAME names a study elsewhere")
            continue
        with together:
            readings.append(_other(study, engine_name, text))
    together.tell()
    return readings


def _document(readings: Sequence[Reading]) -> Document:
    """The report of a study, or the comparison of several."""
    from analysis.comparing.document import comparison
    from analysis.diagnosis import findings_of
    from analysis.report import document

    first = readings[0]
    return document(first, findings_of(first)) if len(readings) == 1 else comparison(readings)


def _other(study: StudySpec, engine_name: str, text: str) -> Reading:
    """The study that `--with` names: of the same storage, of a folder's, or of another database's."""
    where, colon, name = text.rpartition(":")
    if not re.fullmatch(STUDY_NAME, name) or (colon and not where):
        raise ConfigError([f"--with {plain(text, 80)}: write NAME, DIR:NAME or URL:NAME"])
    if not colon and name == study.name:
        raise ConfigError([f"--with {name}: is the study itself; study.name names the other one"])
    storage, folder = study.storage, study.dir
    if "://" in where:
        storage = where
    elif colon:
        storage, folder = f"sqlite:///{where}/optuna.db", where
    shown = f"...:{name}" if "://" in where else text  # an address may hold a password
    try:
        if not colon:
            return _read(StudyStore.of(study, name=name), engine_name)
        return _read(StudyStore.open(storage, name, folder, create=False), engine_name)
    except ConfigError as error:
        raise ConfigError([f"--with {shown}: {line}" for line in error.mistakes]) from error
    except StorageUnusable as error:
        raise StorageUnusable(f"--with {shown}: {error.reason}") from error


def _read(store: StudyStore, engine_name: str) -> Reading:
    """What one study holds."""
    from analysis.reading import read

    return read(store, simplicity_of(store.texts("fingerprint").get("engine.name", engine_name)))
