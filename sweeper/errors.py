"""What can go wrong in a sweep, and how the program then ends.

SpecsweepError                 shown as one message, never as a traceback
├── ConfigError                the configuration is wrong; every mistake is listed (exit 2)
├── StudyMismatch              the study was made with other settings (exit 3)
├── StorageUnusable            the study's database does not answer, or not with a study (exit 5)
├── SweepAborted               something must be mended before going on (exit 5)
├── AlreadyAtWork              another process works on this very study (exit 4)
└── TrialError                 this launch failed, with a FailureKind; caught in one place (trial.py)
SweepInterrupted               Ctrl-C or SIGTERM; not an Exception, so nothing swallows it (exit 130, 143)
├── NightOver                  the night's end came during a launch; caught in one place (loop.py)
└── Terminated                 SIGTERM or SIGHUP where no sweep is under way (exit 143)

The launchers have a tree of their own (launchers/errors.py): HostBusy ends with exit 4, StopFailed with exit 5.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence


class ExitCode(enum.IntEnum):
    """Exit codes of the command `specsweep`; docs/reference/failures.md and `--help` list them."""

    OK = 0
    BUG = 1
    USAGE = 2
    MISMATCH = 3
    HOST_BUSY = 4
    ABORTED = 5
    INTERRUPTED = 130
    TERMINATED = 143


class FailureKind(enum.StrEnum):
    """Why a launch has no score. What each one means for the study: the policy table in policy.py."""

    ILLEGAL = "illegal"
    OUT_OF_MEMORY = "out_of_memory"
    UNSUPPORTED = "unsupported"
    SERVER_CRASH = "server_crash"
    START_TIMEOUT = "start_timeout"
    SERVER_HANG = "server_hang"
    SILENT_BYPASS = "silent_bypass"
    WRONG_SERVER = "wrong_server"
    FAKED = "faked"
    BENCHMARK_FAILED = "benchmark_failed"
    HOST_DIRTY = "host_dirty"
    HOST_LOST = "host_lost"
    INTERRUPTED = "interrupted"


class SpecsweepError(Exception):
    """Base of the errors that are meant for a person."""

    exit_code = ExitCode.ABORTED


class ConfigError(SpecsweepError):
    """The configuration is wrong. `mistakes` holds one line each: dotted path, value, what would be right."""

    exit_code = ExitCode.USAGE

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "1 mistake"
        super().__init__("\n".join([f"{count} in the configuration:", *(f"  {line}" for line in mistakes)]))


class Together:
    """The mistakes of several steps, told at once: each step in `with together:`, in the end `together.tell()`."""

    def __init__(self) -> None:
        self.mistakes: list[str] = []

    def __enter__(self) -> None:
        """Begin a step."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Keep a ConfigError of the step for later; everything else flies on."""
        if isinstance(error, ConfigError):
            self.mistakes += error.mistakes
        return isinstance(error, ConfigError)

    def tell(self) -> None:
        """Raises ConfigError with what was wrong in any step, each line once."""
        if self.mistakes:
            raise ConfigError(list(dict.fromkeys(self.mistakes)))


class StudyMismatch(SpecsweepError):
    """The study's trials were measured with other settings; mixing them would compare unlike things."""

    exit_code = ExitCode.MISMATCH


class StorageUnusable(SpecsweepError):
    """The study's database cannot be opened: nobody answers, a lock or a disk is in the way, its file is damaged.

    The surroundings must be mended, as with a host that does not answer. `reason`: one line, without what to do.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}\nNothing was changed; mend this, then give the same command again.")
        self.reason = reason


class SweepAborted(SpecsweepError):
    """The sweep cannot go on until a person mends something; the message says what."""


class AlreadyAtWork(SpecsweepError):
    """Another process works on this very study, on this host: there is nothing to mend, and nothing to do here."""

    exit_code = ExitCode.HOST_BUSY


class TrialError(SpecsweepError):
    """One launch failed. `evidence` holds the lines (of a log, of an answer) that show the cause."""

    def __init__(self, kind: FailureKind, message: str, evidence: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.evidence = tuple(evidence)


class SweepInterrupted(BaseException):
    """A person or the system asked the sweep to end now. The current trial is abandoned, the server stopped."""

    def __init__(self, exit_code: ExitCode) -> None:
        super().__init__(exit_code.name)
        self.exit_code = exit_code


class NightOver(SweepInterrupted):
    """The end of the night came while a launch was under way: it is abandoned, the sweep ends in good order."""

    def __init__(self) -> None:
        super().__init__(ExitCode.OK)


class Terminated(SweepInterrupted):
    """SIGTERM or SIGHUP came before a sweep was begun, or to another command. `signal_name`: which one."""

    def __init__(self, signal_name: str) -> None:
        super().__init__(ExitCode.TERMINATED)
        self.signal_name = signal_name
