"""The command line. What each command is called and takes: usage.py; what it does: commands/."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from sweeper.command_line import complain, parse
from sweeper.errors import ConfigError, ExitCode, SpecsweepError, SweepInterrupted
from sweeper.garbage import no_search_for_garbage
from sweeper.known_secrets import KNOWN
from sweeper.streams import settle_stdout, settle_streams


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code and never shows a traceback for a user's mistake."""
    try:
        settle_streams()
        KNOWN.learn_environment(os.environ)
        KNOWN.learn_words(sys.argv[1:] if argv is None else argv)
        code = _command(parse(argv))
        if lost := settle_stdout():
            return complain(
                f"standard output cannot be written: {lost}; what was printed is lost", ExitCode.ABORTED
            )
        return code
    except SpecsweepError as error:
        return complain(str(error), error.exit_code)
    except SweepInterrupted as interruption:
        return complain("interrupted; no server is left and nothing measured is lost", interruption.exit_code)
    except KeyboardInterrupt:
        return complain("interrupted; nothing was left half done", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        settle_stdout()
        return ExitCode.OK
    except Exception as error:
        return _unexpected(error)


def _command(arguments: argparse.Namespace) -> ExitCode:
    """What the command does: the function of its name in the module of its name, loaded only now."""
    from importlib import import_module
    from keyword import iskeyword

    _require_folders()
    name = str(arguments.command)
    word = f"{name}_" if iskeyword(name) else name  # `import` can be no name in Python
    with no_search_for_garbage():
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


def _unexpected(error: Exception) -> ExitCode:
    """A bug, or an error of a host, a disk or a database that ends a sweep."""
    from launchers.errors import HostBusy, LauncherError, StopFailed
    from sweeper.database import STORAGE_ERRORS, reason_of
    from sweeper.text import plain

    if isinstance(error, HostBusy):
        return complain(str(error), ExitCode.HOST_BUSY)
    if isinstance(error, StopFailed):
        listed = "".join(f"\n  {line}" for line in error.survivors)
        return complain(f"stopped: {error}{listed}\nEnd these processes, then run again.", ExitCode.ABORTED)
    if isinstance(error, (LauncherError, OSError, *STORAGE_ERRORS)):
        told = reason_of(error) if isinstance(error, STORAGE_ERRORS) else str(error)
        return complain(
            f"stopped: {plain(told, 2000)}\nWhat is in the study is kept; mend this, then run again.",
            ExitCode.ABORTED,
        )
    told = f"a bug in specsweep: {type(error).__name__}: {error}"
    return complain(f"{told}\n{_written_down(error)}", ExitCode.BUG)


def _written_down(error: Exception) -> str:
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
