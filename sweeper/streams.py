"""A stream for what people see. Whoever reads may go away; the sweep goes on without them."""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
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


_TRAILING = re.compile(r" +(?=\n)")

_NOBODY = (errno.EPIPE, errno.EIO)
"""How a write fails where nobody reads any more: a closed pipe, a terminal that is gone."""


def lenient(stream: IO[str], *, needs_disk: bool = False) -> IO[str]:
    """`stream`, but a write that fails (a closed pipe or terminal, a full disk) is the last one, and no error.

    What is written is shown without the secrets in it, and anywhere but on a terminal without the blanks that a
    table puts behind its lines. `needs_disk`: a full disk is an error, OSError: what is written is all that a
    command is for.
    """
    return cast("IO[str]", _LenientStream(stream, needs_disk))


class _LenientStream(io.TextIOBase):
    """Writes to `stream` until that fails, and then nowhere."""

    def __init__(self, stream: IO[str], needs_disk: bool) -> None:
        self._stream = stream
        self._is_page = not stream.isatty()
        self._needs_disk = needs_disk
        self._gone = False

    def write(self, text: str) -> int:
        """Write `text`, or drop it."""
        if not self._gone:
            try:
                shown = KNOWN.hide(text)
                self._stream.write(_TRAILING.sub("", shown) if self._is_page else shown)
            except OSError as error:
                self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Flush, or give the stream up."""
        if not self._gone:
            try:
                self._stream.flush()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Nothing more is written. Raises `error` where that is one."""
        self._gone = True
        if self._needs_disk and error.errno not in _NOBODY:
            raise error

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
    """Make sure that there are streams, and that all can be written to them, if need be spelt otherwise (`SPELT`).

    A closed one (`>&-`) leads nowhere from here on; else the next file that is opened would take its place.
    """
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (as long as the process)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=SPELT)
    if not os.environ.get("COLUMNS", "1").strip("0"):
        del os.environ["COLUMNS"]  # no terminal has so few; argparse and rich would believe it


def settle_stdout() -> str:
    """Flush standard output; what cannot be is not tried again at the interpreter's end.

    Returns why what was printed is lost, as on a full disk; empty where it is not, or where nobody reads any more.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "" if error.errno in _NOBODY else error.strerror or str(error)
    return ""
