"""The server's log: both standard streams, one write per line, so that the lines of many processes do not mix."""

from __future__ import annotations

import contextlib
import os
import time

_label = ""
_silent = False


def label(text: str) -> None:
    """What this process adds to the time in front of each line, such as TP3; empty for none."""
    global _label
    _label = f" {text}" if text else ""


def silence() -> None:
    """From now on nothing arrives: the disk is full."""
    global _silent
    _silent = True


def raw(text: str | bytes) -> None:
    """Text as it is, with a newline."""
    data = text.encode() if isinstance(text, str) else text
    if not _silent:
        with contextlib.suppress(OSError):
            os.write(2, data + b"\n")


def say(text: str) -> None:
    """A line of Python's logging, in SGLang's format."""
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    raw(f"[{now}{_label}] {text}")


def access(client: tuple[str, int], request: str, status: int, reason: str) -> None:
    """A line of uvicorn's access log."""
    say(f'INFO:     {client[0]}:{client[1]} - "{request} HTTP/1.1" {status} {reason}')
