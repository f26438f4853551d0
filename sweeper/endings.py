"""How the program ends after an error: its exit code, and what a person is told.

The command line and the notifications say the same. What a check needs of other packages is loaded only when it is
asked: a mistake in a command shall cost no second.
"""

from __future__ import annotations

from dataclasses import dataclass

from sweeper.errors import ExitCode, NightOver, SpecsweepError, SweepInterrupted, Terminated

INTERRUPTED = "interrupted; no server is left and nothing measured is lost"


@dataclass(frozen=True)
class Ending:
    """An exit code with its message. With `ExitCode.BUG` there is a traceback to be kept."""

    code: ExitCode
    text: str


def ending_of(error: BaseException) -> Ending:
    """How a program ends that this error has stopped."""
    if isinstance(error, SpecsweepError):
        return Ending(error.exit_code, str(error))
    if isinstance(error, Terminated):
        return Ending(error.exit_code, f"ended by {error.signal_name}; nothing was left half done")
    if isinstance(error, SweepInterrupted):
        return Ending(error.exit_code, INTERRUPTED)
    if isinstance(error, KeyboardInterrupt):
        return Ending(ExitCode.INTERRUPTED, "interrupted; nothing was left half done")
    return _of_others(error)


def _interruption_behind(error: BaseException) -> SweepInterrupted | None:
    """The interruption during whose clearing up this error came; None: it came by itself."""
    before = error.__context__
    while before is not None and (not isinstance(before, SweepInterrupted) or isinstance(before, NightOver)):
        before = before.__context__
    return before


def _of_others(error: BaseException) -> Ending:
    """A bug, or an error of a host, a disk or a database that ends a sweep."""
    from launchers.errors import HostBusy, LauncherError, StopFailed
    from sweeper.storing.losses import STORAGE_ERRORS, reason_of
    from sweeper.text import plain

    if isinstance(error, HostBusy):
        return Ending(ExitCode.HOST_BUSY, str(error))
    if isinstance(error, StopFailed):
        listed = "".join(f"\n  {line}" for line in error.survivors)
        return Ending(ExitCode.ABORTED, f"stopped: {error}{listed}\nEnd these processes, then run again.")
    if isinstance(error, (LauncherError, OSError, *STORAGE_ERRORS)):
        told = reason_of(error) if isinstance(error, STORAGE_ERRORS) else str(error)
        if isinstance(error, STORAGE_ERRORS) and (asked := _interruption_behind(error)):
            away = f"the study's database could not be told: {plain(told, 2000)}"
            return Ending(asked.exit_code, f"interrupted, and {away}\nWhat it was not told is measured again.")
        kept = "What is in the study is kept; mend this, then run again."
        return Ending(ExitCode.ABORTED, f"stopped: {plain(told, 2000)}\n{kept}")
    return Ending(ExitCode.BUG, f"a bug in specsweep: {type(error).__name__}: {error}")
