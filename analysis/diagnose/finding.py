"""What a rule found: in words for the owner, with the numbers it is drawn from and what to do next."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Severity(enum.StrEnum):
    """How much a finding matters.

    WARNING: numbers may not be what they seem; look at it first. LIMIT: what decides the result, or holds it back.
    NOTE: worth knowing; nothing depends on it.
    """

    WARNING = "warning"
    LIMIT = "limit"
    NOTE = "note"


@dataclass(frozen=True)
class Evidence:
    """One line of numbers: what it is of, the value with its unit and interval, the trials it is drawn from."""

    what: str
    value: str
    trials: tuple[int, ...] = ()


@dataclass(frozen=True)
class Finding:
    """What rule `rule` found. `text`: how that follows from the numbers. `next_step`: what to do about it."""

    rule: str
    severity: Severity
    title: str
    text: str
    evidence: tuple[Evidence, ...]
    next_step: str
