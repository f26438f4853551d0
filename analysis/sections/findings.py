"""The part of the report on reasons: why the numbers are as they are, and what to do about each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from analysis.blocks import Block, Bullets, Heading, Paragraph, Section
from analysis.markup import Markdown, inline

MAX_FINDINGS = 30


class Finding(Protocol):
    """What a rule of the diagnosis has found. Plain text; it is escaped here."""

    @property
    def title(self) -> str:
        """In one line."""

    @property
    def text(self) -> str:
        """The reasoning, with its numbers."""

    @property
    def next_step(self) -> str:
        """What to do; empty when nothing is to be done."""


def diagnosis(findings: Sequence[Finding]) -> Section | None:
    """The findings in the order in which they are given; None when there are none."""
    blocks: list[Block] = []
    for found in findings[:MAX_FINDINGS]:
        blocks += [Heading(inline(found.title)), Paragraph(inline(found.text, 3000))]
        if found.next_step:
            blocks.append(Bullets([Markdown(f"**Next:** {inline(found.next_step, 1000)}")]))
    return Section("Why it is so", blocks) if blocks else None
