"""Feeds a parser and counts: an error that it is not documented to raise is a crash, and so is too long a time."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.fuzz.mutator import inputs
from tests.fuzz.parsers import Parser

LIMIT_S = 10.0
"""What one input of at most 12 kB may take on a busy machine."""


class TooSlow(BaseException):
    """An input took longer than LIMIT_S."""


@dataclass
class Outcome:
    """How a parser fared; a crash by its error's type and the place that raised it, with the first such input."""

    name: str
    num_inputs: int = 0
    num_refused: int = 0
    num_crashes: int = 0
    crashes: dict[str, bytes] = field(default_factory=dict)


def feed(parser: Parser, count: int) -> Outcome:
    """The parser's seeds and `count` inputs made of them."""
    outcome = Outcome(parser.name)
    with limited():
        for content in inputs(parser.seeds, count, parser.name):
            outcome.num_inputs += 1
            signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
            try:
                parser.feed(content)
            except parser.raises as error:
                outcome.num_refused += 1
                if UNDOCUMENTED in type(error).__name__:  # pydantic's error is a ValueError: a record was not made
                    note(outcome, error, content)
            except (Exception, TooSlow) as error:  # noqa: BLE001  (that is what is looked for)
                note(outcome, error, content)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    return outcome


UNDOCUMENTED = "ValidationError"


def note(outcome: Outcome, error: BaseException, content: bytes) -> None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}" if trace else "?"
    outcome.num_crashes += 1
    outcome.crashes.setdefault(f"{type(error).__name__} in {place}: {str(error)[:100]!r}", content)


@contextmanager
def limited() -> Iterator[None]:
    def too_slow(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, too_slow)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
