"""One value under `space`: from Hydra's sweep syntax to the values that a parameter can take.

    choice(a, b) or [a, b]      one of the listed values
    range(1, 8)                 whole numbers from 1 to 7. THE END IS NOT INCLUDED: Hydra's rule, and Python's
    range(0, 9, step=2)         0, 2, 4, 6, 8
    interval(0.8, 0.95)         real numbers, both ends included
    int(interval(1, 8))         whole numbers, both ends included
    tag(log, interval(...))     real numbers on a logarithmic scale

Anything else is a plain value: the parameter is fixed.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from sweeper.config.mistakes import checked, shown
from sweeper.spec import Choice, Domain, FlagValue, Interval, IntRange

_MAX_LISTED = 1000
_PIECE = re.compile(r"\s*(choice|range|interval)\s*\(")


@dataclass(frozen=True)
class Sweep:
    """A sweep as it was written. Arguments: the values; or start, stop, step; or low, high."""

    kind: Literal["choice", "range", "interval"]
    arguments: tuple[object, ...]
    tags: frozenset[str] = frozenset()


Reader = Callable[[str], Sweep | str]
"""Reads text in Hydra's syntax: a sweep, or plain text. Raises ValueError for a sweep that is written wrongly."""


def domain_or_value(raw: object, read: Reader) -> Domain | FlagValue:
    """What a parameter can take: a domain, or one plain value. Raises ValueError that says what is wrong."""
    if isinstance(raw, str):
        parsed = read(raw)
        return to_domain(parsed) if isinstance(parsed, Sweep) else parsed
    if isinstance(raw, list):
        if any(isinstance(item, str) and _PIECE.match(item) for item in raw):
            raise ValueError("a list holds plain values: write [2, 4], or choice(2,4) without a list around it")
        return to_domain(Sweep("choice", tuple(raw)))
    if isinstance(raw, Mapping):
        raise ValueError("a mapping is no value; write choice(...), range(...), interval(...) or one plain value")
    return plain_value(raw)


def plain_value(raw: object) -> FlagValue:
    """`raw`, when it can be a flag's value. Raises ValueError."""
    if raw is None:
        raise ValueError("null is no value; to leave a flag away, write false")
    if not isinstance(raw, str | int | float):
        raise ValueError(f"a value is text, a number, true or false, not {shown(raw)}")
    if isinstance(raw, float) and not math.isfinite(raw):
        raise ValueError("a number must be finite")
    return raw


def to_domain(sweep: Sweep) -> Domain:
    """The values that a sweep describes. Raises ValueError that says what is wrong with it."""
    if unknown := sweep.tags - {"log"}:
        raise ValueError(f"the tag {min(unknown)!r} means nothing here; valid: log")
    if sweep.tags and (sweep.kind != "interval" or isinstance(sweep.arguments[0], int)):
        raise ValueError("tag(log, ...) needs an interval of real numbers: tag(log, interval(0.001, 1))")
    if sweep.kind == "choice":
        values = tuple(plain_value(value) for value in sweep.arguments)
        return checked(lambda: Choice(values=values))
    numbers = [decimal.Decimal(str(argument)) for argument in sweep.arguments]
    if not all(number.is_finite() for number in numbers):
        raise ValueError(f"{sweep.kind}(...) needs finite numbers")
    whole = all(isinstance(argument, int) for argument in sweep.arguments)
    if sweep.kind == "range":
        return _range(*numbers, whole=whole)
    low, high = numbers
    if whole:
        return checked(lambda: IntRange(low=int(low), high=int(high)))
    return checked(lambda: Interval(low=float(low), high=float(high), log=bool(sweep.tags)))


def _range(start: decimal.Decimal, stop: decimal.Decimal, step: decimal.Decimal, *, whole: bool) -> Domain:
    if step <= 0:
        raise ValueError("a range needs a step above 0")
    if stop <= start:
        raise ValueError(f"the range is empty: it goes from {start} up to, but not including, {stop}")
    count = math.ceil((stop - start) / step)
    if whole:
        high = int(start) + (count - 1) * int(step)
        return checked(lambda: IntRange(low=int(start), high=high, step=int(step)))
    if count > _MAX_LISTED:
        raise ValueError(f"the range has {count} values, more than {_MAX_LISTED}; use interval(low, high)")
    return Choice(values=tuple(float(start + index * step) for index in range(count)))
