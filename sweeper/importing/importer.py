"""Imports files into a study: read, understood, checked against each other, added once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.engines.registry import canonical_as_told, roles_of, speculates_of
from sweeper.errors import ConfigError, Together
from sweeper.importing.columns import BY_NAME, ROLES, assigned
from sweeper.importing.files import CSV, ResultFile, Row, read_results
from sweeper.importing.formats import DEFAULT_ENGINE, FLAG, told
from sweeper.importing.launches import Imported, Read, launches_of
from sweeper.importing.results import RATES, Asked, understood
from sweeper.importing.study import Batch, ImportedStudy, earlier_launches, require_same_load, write
from sweeper.spec import FlagValue, StudySpec
from sweeper.storing.storage import StudyStore
from sweeper.text import plain

_MAX_TOLD = 20
"""So many mistakes are told of files that hold no result at all."""


@dataclass(frozen=True)
class Options:
    """How files are to be read. Empty where the files say it themselves.

    `columns`: role to column. `kept`: columns that are flags. `fixed`: flags that all rows had. `where`: column to
    the only value that is imported. `baseline`: column and value that mark a server without speculation.
    """

    engine: str = ""
    kind: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    fixed: Mapping[str, FlagValue] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    baseline: tuple[str, str] | None = None


@dataclass(frozen=True)
class Outcome:
    """What an import did.

    `study` is None when there was nothing new. `notes`: what was left out, one line each.
    """

    study: ImportedStudy | None
    num_new: int
    num_known: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Understood:
    """What files hold, before anything is written; and a line for each thing that was left out."""

    batch: Batch
    notes: tuple[str, ...]


def read_files(paths: Sequence[Path], kind: str = "") -> list[ResultFile]:
    """Each file, in the format `kind`, told from its content if empty. Raises ConfigError with every mistake."""
    together, files = Together(), list[ResultFile]()
    for path in paths:
        with together:
            files.append(read_results(path, kind))
    together.tell()
    return files


def understood_files(files: Sequence[ResultFile], options: Options) -> Understood:
    """The results in at least one file. Raises ConfigError with every mistake in them."""
    engine = _engine(files, options)
    found: list[Imported] = []
    notes: list[str] = []
    loads: list[tuple[ResultFile, int, Mapping[str, str]]] = []
    together = Together()
    for file in files:
        results, told_of = list[Read](), list[str]()
        with together:
            results, told_of = _understood(file, engine, options)
        notes += [*file.bad, *told_of]
        loads += [(file, read.line, read.result.load) for read in results]
        launches, twice = launches_of(file, results, canonical_as_told(engine), engine)
        found += launches
        notes += twice
    together.tell()
    if not found:
        raise ConfigError(_most(notes) or [f"{files[0].name}: holds no result that --where asks for"])
    return Understood(Batch(engine, _one_load(loads), found), tuple(notes))


def add_results(results: Understood, place: StudySpec) -> Outcome:
    """Add what files hold to the study, which is made if it does not exist; whoever calls it owns that.

    Raises ConfigError, having written nothing.
    """
    batch, notes = results.batch, results.notes
    try:
        store: StudyStore | None = StudyStore.open(place.storage, place.name, place.dir, create=False)
    except ConfigError:
        store = None
    earlier = earlier_launches(store) if store else []
    if store is not None:
        require_same_load(store, batch)
    known = {one.source for one in earlier}
    new = [one for one in batch.launches if one.source not in known]
    num_known = len(batch.launches) - len(new)
    if not new:
        return Outcome(None, 0, num_known, tuple(notes))
    study = write(store, place, Batch(batch.engine, batch.load, [*earlier, *new]))
    return Outcome(study, len(new), num_known, tuple(notes))


def _engine(files: Sequence[ResultFile], options: Options) -> str:
    """Whose results these are."""
    told_by = {options.engine or DEFAULT_ENGINE.get(file.kind, "sglang") for file in files}
    if len(told_by) > 1:
        raise ConfigError(
            [f"--engine: the files hold results of {' and '.join(sorted(told_by))}; import them apart"]
        )
    return told_by.pop()


def _understood(file: ResultFile, engine: str, options: Options) -> tuple[list[Read], list[str]]:
    """The results of a file, and a line for each row and column that was left out."""
    rows = told(file)
    columns = list(dict.fromkeys(name for row in rows for name in row.cells if not name.startswith(FLAG)))
    roles, ignored = assigned(columns, options.columns, options.kept)
    _require_columns(columns, [*options.where, *([options.baseline[0]] if options.baseline else [])])
    _require_rate(file, roles, columns)
    ignored = [c for c in ignored if c not in options.where and c != (options.baseline or ("",))[0]]
    asked = Asked(speculates_of(engine), roles_of(engine), roles, options.kept, options.fixed, options.baseline)
    results: list[Read] = []
    refused: dict[str, list[int]] = {}
    for row in rows:
        if not _is_asked_for(row, options.where):
            continue
        try:
            results.append(Read(row.line, understood(row.cells, asked)))
        except ValueError as error:
            refused.setdefault(str(error), []).append(row.line)
    notes = [f"{file.where(*lines)}: {error}" for error, lines in refused.items()]
    if ignored and file.kind == CSV:
        listed = ", ".join(plain(column, 60) for column in ignored[:20])
        notes.append(
            f"{file.name}: not read: {listed} (--columns ROLE=COLUMN gives a meaning, --keep COLUMN a flag)"
        )
    return results, notes


def _require_columns(columns: Sequence[str], named: Sequence[str]) -> None:
    if missing := [name for name in named if name not in columns]:
        listed = ", ".join(plain(column, 60) for column in columns[:40])
        raise ConfigError(
            [f"--where, --baseline: no column {plain(name)!r}; the file has {listed}" for name in missing]
        )


def _require_rate(file: ResultFile, roles: Mapping[str, str], columns: Sequence[str]) -> None:
    """Raises ConfigError where no column can be a throughput: then no row is a result, and it may be no table."""
    if not any(BY_NAME[role].metric in RATES for role in roles):
        named = ", ".join(role.name for role in ROLES if role.metric in RATES)
        why = f"none of its columns is a throughput ({named}); it has {plain(', '.join(columns), 200)}"
        raise ConfigError([f"{file.name}: is no table of results: {why}; --columns throughput=COLUMN names one"])


def _most(notes: Sequence[str]) -> list[str]:
    """The first of the notes, and how many more there are."""
    left = len(notes) - _MAX_TOLD
    return [*notes[:_MAX_TOLD], *([f"and {left} more like these"] if left > 0 else [])]


def _is_asked_for(row: Row, where: Mapping[str, str]) -> bool:
    return all(str(row.cells.get(column, "")) == value for column, value in where.items())


def _one_load(loads: Sequence[tuple[ResultFile, int, Mapping[str, str]]]) -> dict[str, str]:
    """What all rows were measured under. Raises ConfigError where they differ: such numbers do not compare."""
    seen: dict[str, dict[str, tuple[ResultFile, int]]] = {}
    for file, line, load in loads:
        for name, value in load.items():
            seen.setdefault(name, {}).setdefault(value, (file, line))
    mistakes = []
    for name, values in seen.items():
        if len(values) > 1:
            listed = ", ".join(f"{value!r} (line {line})" for value, (_, line) in list(values.items())[:8])
            mistakes.append(
                f"--where: rows differ in {name}: {listed}; import one at a time: --where COLUMN=VALUE"
            )
    if mistakes:
        raise ConfigError(mistakes)
    return {name: next(iter(values)) for name, values in seen.items()}
