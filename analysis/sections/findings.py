"""The part of the report on reasons: why the numbers are as they are, and what to do about each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from analysis.blocks import Block, Bullets, Heading, Paragraph, Section
from analysis.markup import Markdown, inline, trials

MAX_FINDINGS = 30
MAX_EVIDENCE = 10


class Evidence(Protocol):
    """Numbers that a finding is drawn from. Plain text; it is escaped here."""

    @property
    def what(self) -> str:
        """What they are of."""

    @property
    def value(self) -> str:
        """The value with its unit and interval."""

    @property
    def trials(self) -> Sequence[int]:
        """The trials behind it."""


class Finding(Protocol):
    """What a rule of the diagnosis has found. Plain text; it is escaped here."""

    @property
    def severity(self) -> str:
        """How much it matters, in one word."""

    @property
    def title(self) -> str:
        """In one line."""

    @property
    def text(self) -> str:
        """The reasoning."""

    @property
    def evidence(self) -> Sequence[Evidence]:
        """What it is drawn from."""

    @property
    def next_step(self) -> str:
        """What to do; empty when nothing is to be done."""


def diagnosis(findings: Sequence[Finding]) -> Section | None:
    """The findings in the order in which they are given; None when there are none."""
    blocks = [block for found in findings[:MAX_FINDINGS] for block in _told(found)]
    return Section("Why", blocks) if blocks else None


def _told(found: Finding) -> list[Block]:
    blocks: list[Block] = [
        Heading(Markdown(f"{inline(found.title)} ({inline(found.severity)})")),
        Paragraph(inline(found.text, 3000)),
    ]
    items = [_line(one) for one in found.evidence[:MAX_EVIDENCE]]
    if (left := len(found.evidence) - MAX_EVIDENCE) > 0:
        items.append(Markdown(f"{left} more"))
    if items:
        blocks.append(Bullets(items))
    if found.next_step:
        blocks.append(Paragraph(Markdown(f"**Next:** {inline(found.next_step, 1000)}")))
    return blocks


def _line(one: Evidence) -> Markdown:
    where = f" ({trials(one.trials)})" if one.trials else ""
    return Markdown(f"{inline(one.what)}: {inline(one.value)}{where}")
