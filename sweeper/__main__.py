"""The command line. What each command is called and takes: usage/; what it does: commands/."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from sweeper.endings import ending_of
from sweeper.errors import ConfigError, ExitCode, SweepInterrupted
from sweeper.garbage import no_search_for_garbage
from sweeper.interrupts import ends_at_once, ends_heard
from sweeper.known_secrets import KNOWN
from sweeper.streams import settle_stdout, settle_streams
from sweeper.usage.command_line import complain, parse


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code and never shows a traceback for a user's mistake."""
    try:
        with ends_heard():
            return _done(argv)
    except BrokenPipeError:
        settle_stdout()
        return ExitCode.OK
    except (Exception, SweepInterrupted, KeyboardInterrupt) as error:
        return _ended(error)


def _done(argv: Sequence[str] | None) -> int:
    """The exit code of a command that nothing has stopped. Raises what stops it."""
    settle_streams()
    KNOWN.learn_environment(os.environ)
    KNOWN.learn_words(sys.argv[1:] if argv is None else argv)
    code = _command(parse(argv))
    if lost := settle_stdout():
        return complain(f"standard output cannot be written: {lost}; what was printed is lost", ExitCode.ABORTED)
    return code


def _command(arguments: argparse.Namespace) -> ExitCode:
    """What the command does: the function of its name in the module of its name, loaded only now."""
    from importlib import import_module
    from keyword import iskeyword

    _require_folders()
    name = str(arguments.command)
    word = f"{name}_" if iskeyword(name) else name  # `import` can be no name in Python
    with no_search_for_garbage(), ends_at_once():
        module = import_module(f"sweeper.commands.{word}")
    function: Callable[[argparse.Namespace], ExitCode] = getattr(module, word)
    return function(arguments)


def _require_folders() -> None:
    """Raises ConfigError where the working directory was deleted, or nobody knows a home: places would fail."""
    try:
        Path.cwd()
        Path.home()
    except OSError as error:
        raise ConfigError([f"the working directory is gone ({error.strerror}); cd to one that exists"]) from error
    except RuntimeError:
        raise ConfigError(
            ["HOME: is not set, and this user has no home; set it: HOME=/FOLDER specsweep"]
        ) from None


def _ended(error: BaseException) -> ExitCode:
    """Say why it ends; of a bug also where the traceback is."""
    ending = ending_of(error)
    where = f"\n{_written_down(error)}" if ending.code is ExitCode.BUG else ""
    return complain(f"{ending.text}{where}", ending.code)


def _written_down(error: BaseException) -> str:
    """Where the traceback is: in a file of the working directory, or, if that cannot be, in the message itself."""
    text = KNOWN.hide("".join(traceback.format_exception(error)))
    log = Path("specsweep-error.log")
    try:
        with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return f"Traceback: {log.resolve()}"
    except OSError:
        return text


if __name__ == "__main__":
    sys.exit(main())
