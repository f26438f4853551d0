"""`specsweep init`."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sweeper.commands.writing import writing
from sweeper.errors import ConfigError, ExitCode, Together
from sweeper.own_folder.answers import QUESTIONS, Question, answers_of
from sweeper.own_folder.files import FIXED, files_of
from sweeper.schemas.files import FOLDER, schemas, text_of
from sweeper.streams import lenient

_ORDER = tuple(question.name for question in QUESTIONS)
"""What is right for an answer depends on those before it: one behind a missing one is not judged yet."""

_NEXT = {
    "doctor": "is the host ready?",
    "plan": "what would be launched, and until when",
    "run": "the sweep",
}
_NAME_ONE = "name a folder that you may write: specsweep init DIR"


def init(arguments: argparse.Namespace) -> ExitCode:
    """Ask, or take the flags, write the folder, and say what to do next.

    Raises ConfigError; nothing is written then.
    """
    folder = Path(arguments.folder)
    given = _given(arguments)
    missing = [question.flag for question in QUESTIONS if question.name not in given]
    asks = bool(missing) and not arguments.yes
    together = Together()
    if asks and not sys.stdin.isatty():
        together.mistakes += [
            f"{flag}: is missing, and standard input is no terminal to ask on" for flag in missing
        ]
        together.mistakes += ["--yes: takes the defaults of what is not given"]
    with together:
        answers_of({name: given[name] for name in takewhile(given.__contains__, _ORDER)}, None)
    with together:
        _require_room(folder, FIXED, force=arguments.force)
    together.tell()
    console = Console(file=lenient(sys.stdout), highlight=False)
    if asks:
        console.print(
            "Five questions; Enter takes what stands in brackets, and every answer can be changed later."
        )
    answers = answers_of(given, partial(_ask, console) if asks else None)
    written = files_of(answers)
    _require_room(folder, written, force=arguments.force)
    _write(folder, {**written, **{f"{FOLDER}/{name}.json": text_of(made) for name, made in schemas().items()}})
    for name in written:
        console.print(f"wrote {folder / name}", markup=False, soft_wrap=True)
    console.print(f"wrote {folder / FOLDER}, by which an editor checks these", markup=False, soft_wrap=True)
    there = "" if folder.resolve() == Path.cwd() else f"  cd {shlex.quote(str(folder))}\n"
    console.print(f"\nNext:\n{there}", end="", markup=False, soft_wrap=True)
    table = Table.grid(padding=(0, 2))
    for command, meaning in _NEXT.items():
        table.add_row(f"  specsweep {command}", meaning)
    console.print(table)
    return ExitCode.OK


def _given(arguments: argparse.Namespace) -> dict[str, str]:
    """The answers among the flags."""
    told = {
        "host": arguments.host,
        "engine": arguments.engine,
        "model": arguments.model,
        "drafters": ",".join(arguments.drafter) if arguments.drafter else None,
        "prompts": arguments.prompts,
    }
    return {name: value for name, value in told.items() if value is not None}


def _ask(console: Console, question: Question, default: str, told: Mapping[str, str]) -> str:
    """What was typed, once it is right. Raises ConfigError at the end of the input."""
    console.print(f"\n[bold]{escape(question.text)}[/bold]\n  {escape(question.explanation)}")
    while True:
        try:
            text = console.input(f"  {escape(f'[{default}]')} ").strip() or default
        except EOFError:
            raise ConfigError([f"{question.flag}: no answer; nothing was written"]) from None
        if not (reason := question.mistake(text, told)):
            return text
        console.print(f"  {text!r} {reason}", style="yellow", markup=False)


def _require_room(folder: Path, names: Iterable[str], *, force: bool) -> None:
    """Raises ConfigError when the folder cannot be one of ours, or one of the files is there and not `force`."""
    lowest = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    if not lowest.is_dir():
        raise ConfigError([f"DIR: {lowest} is no folder; {_NAME_ONE}"])
    if not os.access(lowest, os.W_OK | os.X_OK):
        raise ConfigError([f"DIR: {lowest} cannot be written by you; {_NAME_ONE}"])
    there = [folder / name for name in names if os.path.lexists(folder / name)]
    if there and not force:
        raise ConfigError([f"{path}: exists already; --force replaces it" for path in there])


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write all. Raises ConfigError at the first one that cannot be written; those before it stay."""
    for name, text in files.items():
        with writing("DIR", folder / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
