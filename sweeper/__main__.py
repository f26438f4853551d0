"""The command line. What each command is called and takes: usage.py; what it does: commands/."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from sweeper.errors import ExitCode, SpecsweepError, SweepInterrupted
from sweeper.known_secrets import KNOWN
from sweeper.streams import settle_stdout
from sweeper.text import printable
from sweeper.usage import EXIT_CODES, add_commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code and never shows a traceback for a user's mistake."""
    KNOWN.learn_environment(os.environ)
    KNOWN.learn_words(sys.argv[1:] if argv is None else argv)
    arguments = _parse(argv)
    try:
        code = _command(arguments)
        settle_stdout()
        return code
    except SpecsweepError as error:
        return _complain(str(error), error.exit_code)
    except SweepInterrupted as interruption:
        return _complain("interrupted; no server is left and nothing measured is lost", interruption.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted while nothing was under way", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        settle_stdout()
        return ExitCode.OK
    except Exception as error:
        return _unexpected(error)


def _command(arguments: argparse.Namespace) -> ExitCode:
    """What the command does: the function of its name in the module of its name, loaded only now."""
    from importlib import import_module
    from keyword import iskeyword

    name = str(arguments.command)
    word = f"{name}_" if iskeyword(name) else name  # `import` can be no name in Python
    function: Callable[[argparse.Namespace], ExitCode] = getattr(import_module(f"sweeper.commands.{word}"), word)
    return function(arguments)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Options and overrides in any order; `--multirun` is left to the configuration, which explains it."""
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    unknown = [word for word in rest if word.startswith("-") and word not in ("-m", "--multirun")]
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}; see specsweep COMMAND --help")
    arguments.overrides = [*arguments.overrides, *rest]
    return arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="specsweep",
        description="Tunes speculative-decoding servers: restarts, measures, records, and says what wins and "
        "whether it is real.",
        epilog="specsweep COMMAND --help teaches with examples.\n\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    add_commands(parser)
    return parser


class _Version(argparse.Action):
    """Reads the version only when asked for: it costs a tenth of a second."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        parser.exit(message=f"specsweep {version('specsweep')}\n")


def _complain(message: str, code: ExitCode) -> ExitCode:
    with suppress(OSError):  # a closed terminal
        sys.stderr.write(KNOWN.hide(f"specsweep: {printable(message)}\n"))
    return code


def _unexpected(error: Exception) -> ExitCode:
    """A bug, or an error of a host, a disk or a database that ends a sweep."""
    from launchers.errors import HostBusy, LauncherError, StopFailed
    from sweeper.database import STORAGE_ERRORS, reason_of
    from sweeper.text import plain

    if isinstance(error, HostBusy):
        return _complain(str(error), ExitCode.HOST_BUSY)
    if isinstance(error, StopFailed):
        listed = "".join(f"\n  {line}" for line in error.survivors)
        return _complain(f"stopped: {error}{listed}\nEnd these processes, then run again.", ExitCode.ABORTED)
    if isinstance(error, (LauncherError, OSError, *STORAGE_ERRORS)):
        told = reason_of(error) if isinstance(error, STORAGE_ERRORS) else str(error)
        return _complain(
            f"stopped: {plain(told, 2000)}\nWhat is in the study is kept; mend this, then run again.",
            ExitCode.ABORTED,
        )
    log = Path("specsweep-error.log")
    with log.open("a", encoding="utf-8") as file:
        file.write(KNOWN.hide("".join(traceback.format_exception(error))))
    return _complain(
        f"a bug in specsweep: {type(error).__name__}: {error}\nTraceback: {log.resolve()}", ExitCode.BUG
    )


if __name__ == "__main__":
    sys.exit(main())
