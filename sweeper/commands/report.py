"""`specsweep report`."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sweeper import config
from sweeper.commands.as_json import print_json
from sweeper.engines.registry import simplicity_of
from sweeper.errors import ConfigError, ExitCode
from sweeper.spec import StudyPlace, StudySpec
from sweeper.storage import StudyStore

if TYPE_CHECKING:
    from analysis.blocks import Document
    from analysis.reading import Reading

_FORMATS = (".html", ".md")


@contextmanager
def _few_cycles() -> Iterator[None]:
    """While open nothing looks for garbage in cycles: the records, all of them kept, are gone through each time.

    That is 15 % of a report's time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_few_cycles()
def report(arguments: argparse.Namespace) -> ExitCode:
    """Write the report of a study, or of several beside one another; `output` "-" prints it as Markdown.

    Without `output` both kinds are written beside the study, and their paths printed.
    """
    output = arguments.output
    if output not in (None, "-") and Path(output).suffix not in _FORMATS:
        raise ConfigError([f"--output: {output!r} must end with .html or .md, or be - (print as Markdown)"])
    place = config.load_place(arguments.overrides, arguments.config_dir)
    if arguments.json:
        print_json(_as_data(place, arguments))
        return ExitCode.OK
    document = _document(place.study, place.engine_name, arguments.others)
    if output == "-":
        from analysis.page.markdown import markdown

        sys.stdout.write(markdown(document))
        return ExitCode.OK
    beside = _paths(place.study, "comparison" if arguments.others else "report")
    for path in [Path(output)] if output else beside:
        sys.stdout.write(f"{_write(document, path)}\n")
    return ExitCode.OK


def _as_data(place: StudyPlace, arguments: argparse.Namespace) -> dict[str, object]:
    """Verdict and trials, for scripts. Raises ConfigError for what only a page can show."""
    if arguments.others or arguments.output is not None:
        raise ConfigError(["--json: prints one study; --output and --with are for pages"])
    from analysis.summary import summary

    return summary(_read(StudyStore.of(place.study), place.engine_name))


@_few_cycles()
def write_beside(study: StudySpec, engine_name: str) -> list[Path]:
    """Write the report of a study, both kinds, where `specsweep report` does; their paths, the page's first.

    Raises OSError when that cannot be done, SpecsweepError when a stored record cannot be read.
    """
    document = _document(study, engine_name, [])
    return [_write(document, path) for path in _paths(study, "report")]


def _paths(study: StudySpec, kind: str) -> list[Path]:
    return [Path(study.dir) / f"{study.name}-{kind}{suffix}" for suffix in _FORMATS]


def _write(document: Document, path: Path) -> Path:
    """The document in the format that the path's suffix names; the path."""
    from analysis.page.html import html  # loads pandas and templates, which other commands do without
    from analysis.page.markdown import markdown
    from analysis.report import write

    return write(html(document) if path.suffix == ".html" else markdown(document), path)


def _document(study: StudySpec, engine_name: str, others: list[str]) -> Document:
    """The report of a study, or its comparison with the others."""
    from analysis.comparing.document import comparison
    from analysis.diagnosis import findings_of
    from analysis.report import document

    first = _read(StudyStore.of(study), engine_name)
    if not others:
        return document(first, findings_of(first))
    return comparison([first, *(_other(study, engine_name, text) for text in others)])


def _other(study: StudySpec, engine_name: str, text: str) -> Reading:
    """The study that `--with` names: of the same storage, of a folder's, or of another database's."""
    where, colon, name = text.rpartition(":")
    storage, folder = study.storage, study.dir
    if "://" in where:
        storage = where
    elif colon:
        storage, folder = f"sqlite:///{where}/optuna.db", where
    try:
        if not colon:
            return _read(StudyStore.of(study, name=name), engine_name)
        return _read(StudyStore.open(storage, name, folder, create=False), engine_name)
    except ConfigError as error:
        shown = f"...:{name}" if "://" in where else text  # an address may hold a password
        raise ConfigError([f"--with {shown}: {line}" for line in error.mistakes]) from error


def _read(store: StudyStore, engine_name: str) -> Reading:
    """What one study holds."""
    from analysis.reading import read

    stored = store.fact("fingerprint") or {}
    return read(store, simplicity_of(stored.get("engine.name", engine_name)))
