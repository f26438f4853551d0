"""Python tracebacks in a log: which exception ended a process, and what it was about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_BLOCK = 400

_START = "Traceback (most recent call last)"
_MARKER = re.compile(r" hit an exception: |Initialization failed\. warmup error: ")
_CHAINED = re.compile(r"During handling of the above exception|was the direct cause of the following exception")
_RAISED = re.compile(
    r"^(?P<type>(?:\w+\.)*\w*(?:Error|Exception|Exit|Failure|Timeout|Expired|Aborted))(?:: ?.*)?$"
)
_FRAME = re.compile(r'^\s*File "[^"]{1,500}", line \d{1,9}, in \S{1,100}')
_NEXT_ENTRY = re.compile(r"^(?:\[\d{4}-\d\d-\d\d|\d{4}-\d\d-\d\d |INFO\b|WARNING\b)")

# What others say when a process of theirs has died.
_CONSEQUENCE = re.compile(
    r"BrokenPipeError|Connection(?:Reset|Refused|Aborted)Error|EOFError|CancelledError|KeyboardInterrupt"
    r"|SystemExit|Connection (?:closed|reset) by peer|Initialization failed|scheduler died during"
    r"|ContextTerminated|RemoteDisconnected|Socket Timeout|previous error during capture"
)

# Raised by what was asked for, not by circumstances: it would be raised again.
_DETERMINISTIC = re.compile(
    r"(?:^|\.)(?:ValueError|AssertionError|NotImplementedError|TypeError|AttributeError|KeyError|IndexError"
    r"|NameError|UnboundLocalError|OSError|ZeroDivisionError|ArgumentError|\w*ValidationError|JSONDecodeError"
    r"|UnicodeDecodeError|RecursionError)$"
)

_SUBJECTS = (
    (re.compile(r"load_weight|weight_loader|weight_utils|model_loader"), "the model's weights"),
    (re.compile(r"speculative_hook|_speculative_decoding|_handle_spec"), "the speculative settings"),
    (re.compile(r"/speculative/|eagle_worker|draft_worker|eagle3"), "the draft model"),
    (re.compile(r"server_args\.py|arg_groups|__post_init__"), "its settings"),
    (re.compile(r"tokenizer|template"), "the tokenizer or chat template"),
    (re.compile(r"quantization"), "the quantization"),
    (re.compile(r"/attention/"), "the attention backend"),
)


@dataclass(frozen=True)
class Raised:
    """An exception that ended a process: where its line stands, the line, its innermost frame, what it is about.

    `deterministic`: the same configuration would raise it again. `in_warmup`: the server's own first request.
    """

    index: int
    line: str
    frame: str
    subject: str
    deterministic: bool
    in_warmup: bool


def uncaught(lines: Sequence[str]) -> Raised | None:
    """The first exception that ended a process and is not merely the echo of another's death; None without one.

    A traceback counts when the server itself says that it ended a process, or when it is the last thing in the
    log: handled exceptions are logged too, and are followed by something else. Of a chain the first is the cause.
    """
    marked = [index for index, line in enumerate(lines) if _START in line and _MARKER.search(line)]
    for start in marked or _last_chain(lines):
        index = next(_exceptions(lines, start), None)
        if index is not None and (marked or not any(_NEXT_ENTRY.match(line) for line in lines[index + 1 :])):
            return _described(lines, start, index)
    return None


def ends_with_exception(lines: Sequence[str]) -> bool:
    """Whether an exception is the last thing that was said, its message's further lines aside."""
    for line in reversed(lines[-MAX_BLOCK:]):
        if _NEXT_ENTRY.match(line):
            return False
        if _RAISED.match(line):
            return True
    return False


def _last_chain(lines: Sequence[str]) -> list[int]:
    """Where the last traceback of the log starts, with those that it was raised in the handling of."""
    starts = [index for index, line in enumerate(lines) if _START in line]
    while len(starts) > 1 and any(_CHAINED.search(line) for line in lines[starts[-2] : starts[-1]]):
        del starts[-1]
    return starts[-1:]


def _exceptions(lines: Sequence[str], start: int) -> Iterator[int]:
    """The lines after `start` that name an exception, without echoes."""
    for index in range(start + 1, min(start + MAX_BLOCK, len(lines))):
        if _RAISED.match(lines[index]) and not _CONSEQUENCE.search(lines[index]):
            yield index


def _described(lines: Sequence[str], start: int, index: int) -> Raised:
    frames = [line.strip() for line in lines[start:index] if _FRAME.match(line)]
    where = "\n".join(frames)
    named = _RAISED.match(lines[index])
    return Raised(
        index=index,
        line=lines[index].strip(),
        frame=frames[-1] if frames else "",
        subject=next((name for pattern, name in _SUBJECTS if pattern.search(where)), ""),
        deterministic=named is not None and bool(_DETERMINISTIC.search(named["type"])),
        in_warmup="warmup error" in lines[start],
    )
