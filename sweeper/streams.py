"""A stream for what people see. Whoever reads may go away; the sweep goes on without them."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Mapping
from typing import IO, cast

from sweeper.known_secrets import KNOWN

SPELT = "specsweep.spelt"
"""How an encoding without a sign for a character writes it; the name of a handler of Python's `codecs`."""

_SPELLINGS: Mapping[str, str] = {
    **dict.fromkeys("\u2010\u2011\u2013\u2014\u2212\u2500\u2501", "-"),
    **dict.fromkeys("\u2018\u2019", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    **dict.fromkeys("\u2502\u2503", "|"),
    **dict.fromkeys("\u251c\u2514\u250c\u2510\u2518\u2524\u252c\u2534\u253c", "+"),
    "\u00a0": " ",
    "\u00b0": " ",  # 91 °C
    "\u00b1": "+-",
    "\u00b7": ".",
    "\u00d7": "x",
    "\u2026": "...",
    "\u2192": "->",
    "\u2248": "~",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u25cf": "*",
    "\u2713": "ok",
    "\u2717": "x",
}


def _spelt(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that cannot be written: another spelling, else an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(_SPELLINGS.get(c) or _escaped(c) for c in characters), error.end


def _escaped(character: str) -> str:
    """An escape; a point for the dots that a spinner is drawn with."""
    return "." if "\u2800" <= character <= "\u28ff" else ascii(character)[1:-1]


codecs.register_error(SPELT, _spelt)


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

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream behind: what has no sign in it is drawn otherwise."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Whether the stream behind is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The file descriptor behind. Raises OSError when there is none."""
        return self._stream.fileno()


def settle_streams() -> None:
    """Let what the terminal's encoding has no sign for be spelt otherwise (`SPELT`), instead of failing at it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=SPELT)


def settle_stdout() -> None:
    """Flush standard output; if nobody can be reached there, let the interpreter flush into nothing at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
