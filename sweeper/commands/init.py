"""`specsweep init`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from sweeper.errors import ConfigError, ExitCode
from sweeper.own_folder.answers import QUESTIONS, Question, answers_of
from sweeper.own_folder.files import files_of
from sweeper.streams import lenient


def init(arguments: argparse.Namespace) -> ExitCode:
    """Ask, or take the flags, write the folder, and say what to do next.

    Raises ConfigError; nothing is written then.
    """
    folder = Path(arguments.folder)
    given = _given(arguments)
    missing = [question.flag for question in QUESTIONS if question.name not in given]
    asks = bool(missing) and not arguments.yes
    if asks and not sys.stdin.isatty():
        raise ConfigError(
            [f"{flag}: is missing, and standard input is no terminal to ask on" for flag in missing]
            + ["--yes: takes the defaults of what is not given"]
        )
    console = Console(file=lenient(sys.stdout), highlight=False)
    if asks:
        console.print(
            "Five questions; Enter takes what stands in brackets, and every answer can be changed later."
        )
    answers = answers_of(given, partial(_ask, console) if asks else None)
    written = files_of(answers)
    _write(folder, written, force=arguments.force)
    for name in written:
        console.print(f"wrote {folder / name}", markup=False, soft_wrap=True)
    there = "" if folder.resolve() == Path.cwd() else f"  cd {shlex.quote(str(folder))}\n"
    console.print(
        f"\nNext:\n{there}  specsweep doctor     is the host ready?\n"
        "  specsweep plan       what would be launched, and until when\n"
        "  specsweep run        the sweep",
        markup=False,
    )
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


def _write(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Write all, or nothing when one is there already and not `force`. Raises ConfigError."""
    there = [folder / name for name in files if (folder / name).exists()]
    if there and not force:
        raise ConfigError([f"{path}: exists already; --force replaces it" for path in there])
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError([f"DIR: {folder} cannot be written: {error.strerror}: {error.filename}"]) from None
