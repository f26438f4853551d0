"""`specsweep import`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from launchers.clock import SystemClock
from launchers.shell import LocalShell
from sweeper import config, tracking
from sweeper.engines.registry import ENGINE_NAMES
from sweeper.errors import ConfigError, ExitCode, Together
from sweeper.importing.columns import flag
from sweeper.importing.files import FORMATS
from sweeper.importing.importer import Options, Outcome, Understood, add_results, read_files, understood_files
from sweeper.spec import FlagValue, StudySpec

_SYNC_S = 60.0
MAX_NOTES = 60


def import_(arguments: argparse.Namespace) -> ExitCode:
    """Import files into a study and say what that made. Raises ConfigError; nothing has been written then."""
    files, overrides = _split(arguments.overrides)
    together = Together()
    if not any(word.startswith("study.name=") for word in overrides):
        together.mistakes.append("study.name: give the imported study a name of its own: study.name=NAME")
    with together:
        place = config.load_place(overrides, arguments.config_dir)
    with together:
        results = _understood(files, arguments)
    together.tell()
    Path(place.study.dir).mkdir(parents=True, exist_ok=True)
    with _hold(place.study):
        outcome = add_results(results, place.study)
    lines = [*outcome.notes[:MAX_NOTES]]
    if left := len(outcome.notes) - MAX_NOTES:
        lines += [f"and {left} more lines like these"] if left > 0 else []
    lines += _told(outcome, place.study)
    if outcome.study is not None:
        synced = tracking.Tracker(place.tracking, SystemClock()).sync(outcome.study, _SYNC_S)
        lines += [f"MLflow: {synced.error}"] if synced.error else []
    sys.stdout.write("\n".join(lines) + "\n")
    return ExitCode.OK


def _split(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files and the settings."""
    files = [Path(word) for word in words if "=" not in word or Path(word).is_file()]
    return files, [word for word in words if Path(word) not in files]


def _understood(files: Sequence[Path], arguments: argparse.Namespace) -> Understood:
    """What the files hold. Raises ConfigError with every mistake in them and in the options."""
    together = Together()
    if not files:
        together.mistakes.append("FILE: name at least one file of results")
    with together:
        options = _options(arguments)
    with together:
        read = read_files(files, arguments.format if arguments.format in FORMATS else "")
    together.tell()
    return understood_files(read, options)


def _options(arguments: argparse.Namespace) -> Options:
    """The options, read. Raises ConfigError with every mistake."""
    mistakes: list[str] = []
    if arguments.format and arguments.format not in FORMATS:
        mistakes.append(f"--format: {arguments.format!r} is none of {', '.join(FORMATS)}")
    if arguments.engine and arguments.engine not in ENGINE_NAMES:
        mistakes.append(f"--engine: {arguments.engine!r} is none of {', '.join(ENGINE_NAMES)}")
    columns = _pairs("--columns", ",".join(arguments.columns), mistakes)
    where = dict(_pair("--where", word, mistakes) for word in arguments.where)
    fixed: dict[str, FlagValue] = {}
    for word in arguments.set:
        name, value = _pair("--set", word, mistakes)
        read = flag(value)
        fixed[name.replace("-", "_")] = "" if read is None else read
    baseline = _pair("--baseline", arguments.baseline, mistakes) if arguments.baseline else None
    if mistakes:
        raise ConfigError(mistakes)
    kept = tuple(name for words in arguments.keep for name in words.split(",") if name)
    return Options(arguments.engine, arguments.format, columns, kept, fixed, where, baseline)


def _pairs(option: str, words: str, mistakes: list[str]) -> dict[str, str]:
    return dict(_pair(option, word, mistakes) for word in words.split(",") if word)


def _pair(option: str, word: str, mistakes: list[str]) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name:
        mistakes.append(f"{option}: {word!r} should be NAME=VALUE")
    return name, value


def _hold(study: StudySpec) -> AbstractContextManager[None]:
    """Own a study that lies in a file, as a sweep does. Raises HostBusy."""
    if not study.storage.startswith("sqlite"):
        return nullcontext()
    return LocalShell(f"study {study.name}").hold(f"{study.dir}/{study.name}.lock")


def _told(outcome: Outcome, place: StudySpec) -> list[str]:
    """What the import made, and where to look next."""
    known = f", {outcome.num_known} were known" if outcome.num_known else ""
    if outcome.study is None:
        return [f"Nothing new{known}: study {place.name} is as it was."]
    trials = outcome.study.trials()
    baseline = (
        "" if trials and trials[0].is_baseline else "; no baseline yet: import a result without speculation, too"
    )
    launches = sum(len(trial.launches) for trial in trials)
    made = f"study {place.name} has {_count(launches, 'launch')} of {_count(len(trials), 'configuration')}"
    ranked = f"ranked by {outcome.study.objective}{baseline}."
    return [
        f"Imported {_count(outcome.num_new, 'launch')}{known}: {made}, {ranked}",
        *filter(None, [outcome.study.verdict_text()]),
        f"Look next:  specsweep report study.name={place.name} study.dir={place.dir}",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"
