"""A stream for what people see. Whoever reads may go away; the sweep goes on without them."""

from __future__ import annotations

import io
import os
import sys
from typing import IO, cast

from sweeper.known_secrets import KNOWN


def lenient(stream: IO[str]) -> IO[str]:
    """`stream`, but a write that fails (a closed pipe or terminal, a full disk) is the last one, and no error.

    What is written is shown without the secrets in it.
    """
    return cast("IO[str]", _LenientStream(stream))


class _LenientStream(io.TextIOBase):
    """Writes to `stream` until that fails, and then nowhere."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._gone = False

    def write(self, text: str) -> int:
        """Write `text`, or drop it. Never raises OSError."""
        if not self._gone:
            try:
                self._stream.write(KNOWN.hide(text))
            except OSError:
                self._gone = True
        return len(text)

    def flush(self) -> None:
        """Flush, or give the stream up. Never raises OSError."""
        if not self._gone:
            try:
                self._stream.flush()
            except OSError:
                self._gone = True

    def isatty(self) -> bool:
        """Whether the stream behind is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The file descriptor behind. Raises OSError when there is none."""
        return self._stream.fileno()


def settle_streams() -> None:
    """Let what the terminal's encoding has no sign for be written as an escape, instead of failing at it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def settle_stdout() -> None:
    """Flush standard output; if nobody can be reached there, let the interpreter flush into nothing at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
