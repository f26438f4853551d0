"""Reads the command line, and says in one message what is wrong with it. Light: nothing of a sweep is loaded."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from sweeper.errors import ExitCode
from sweeper.known_secrets import KNOWN
from sweeper.text import printable
from sweeper.usage.help_format import HelpFormatter
from sweeper.usage.table import EXIT_CODES, USAGES, add_commands

_GLOBAL = ("--help", "--version")
_KINDS = {"int": "a whole number", "float": "a number"}


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Options and overrides in any order; `--multirun` is left to the configuration, which explains it.

    Raises SystemExit: with 2 after one message about a mistake, with 0 after `--help` and `--version`.
    """
    parser = new_parser()
    arguments, rest = parser.parse_known_args(argv)
    name = arguments.command
    if name is None and rest:
        parser.error(f"unknown option {rest[0]!r}{_near(rest[0], _GLOBAL)}")
    if name is None:
        parser.error(f"name a command: {', '.join(USAGES)}; specsweep --help says what they do")
    unknown = [word for word in rest if word.startswith("-") and word not in ("-m", "--multirun")]
    if unknown:
        near = _near(unknown[0], options_of(parser, name))
        path, is_given, _ = unknown[0].strip("-").partition("=")
        as_setting = f"; settings have no dashes: {path}=VALUE"
        is_setting = bool(is_given) and near.startswith("; valid") and USAGES[name].settings
        parser.error(f"{name}: unknown option {unknown[0]!r}{near}{as_setting if is_setting else ''}")
    if not USAGES[name].settings and rest:
        parser.error(f"{name}: {rest[0]!r} has no meaning here; see specsweep {name} --help")
    arguments.overrides = [*getattr(arguments, "overrides", ()), *rest]
    return arguments


def options_of(parser: argparse.ArgumentParser, command: str) -> tuple[str, ...]:
    """The long options of a command."""
    subs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    actions = subs.choices[command]._actions
    return tuple(word for action in actions for word in action.option_strings if word.startswith("--"))


def complain(message: str, code: ExitCode) -> ExitCode:
    """Write the message to standard error, without secrets, if anybody listens there. Returns `code`."""
    with suppress(OSError):  # a closed terminal
        sys.stderr.write(KNOWN.hide(f"specsweep: {printable(message)}\n"))
    return code


def new_parser() -> argparse.ArgumentParser:
    """A parser for all commands."""
    parser = _Parser(
        prog="specsweep",
        description="Tunes speculative-decoding servers: restarts, measures, records, and says what wins and "
        "whether it is real.",
        epilog="specsweep COMMAND --help teaches with examples.\n\n" + EXIT_CODES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    add_commands(parser)
    return parser


class _Version(argparse.Action):
    """Reads the version only when asked for: it costs a tenth of a second."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        parser.exit(message=f"specsweep {version('specsweep')}\n")


class _Parser(argparse.ArgumentParser):
    """Tells a mistake as all others are told, without the usage of all options before it."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        raise SystemExit(complain(_in_our_words(self.prog, message), ExitCode.USAGE))


def _in_our_words(prog: str, message: str) -> str:
    """What argparse says of a command's option, with the command in front and what would be right."""
    told = message.removeprefix("argument ")
    if found := re.fullmatch(r"COMMAND: invalid choice: '(.*)' \(choose from .*\)", told, re.DOTALL):
        return f"there is no command {found[1]!r}{_near(found[1], (*USAGES, *_GLOBAL))}"
    if found := re.fullmatch(r"(\S+): invalid choice: '(.*)' \(choose from (.*)\)", told, re.DOTALL):
        valid = found[3].replace("'", "")
        told = f"{found[1]}: {found[2]!r} is none of {valid}"
    elif found := re.fullmatch(r"(\S+): invalid (int|float) value: (.*)", told, re.DOTALL):
        told = f"{found[1]}: {found[3]} is not {_KINDS[found[2]]}"
    elif found := re.fullmatch(r"(\S+): expected (one|at least one) argument", told):
        told = f"{found[1]}: needs a value behind it"
    elif found := re.fullmatch(r"(\S+): ignored explicit argument (.*)", told, re.DOTALL):
        told = f"{found[1]}: takes no value; {found[2]} is one"
    command = prog.removeprefix("specsweep").strip()
    return f"{command}: {told}" if command else told


def _near(word: str, valid: Sequence[str]) -> str:
    """What may have been meant."""
    from sweeper.near_names import nearest

    near = nearest(word.partition("=")[0], valid)
    return f"; did you mean {near}?" if near else f"; valid: {', '.join(valid)}"
