"""What a report consists of: sections of paragraphs, lists, tables, code and figures. Plain data.

Sections build it from a study; analysis/page writes it as Markdown and as HTML. All text is `Markdown`
(markup.py), so whatever came from outside has been escaped when it gets here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from markupsafe import Markup

from analysis.markup import MAX_LINE, Markdown, bare, count


class Tone(StrEnum):
    """How a statement is meant; shown as a colour and, beside it, as a word or a sign."""

    GOOD = "good"
    NEUTRAL = "neutral"
    CAREFUL = "careful"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of running text; one that calls for care is set apart."""

    text: Markdown
    tone: Tone = Tone.NEUTRAL


@dataclass(frozen=True)
class Statement:
    """A sentence to be seen first. `text` is not bold yet."""

    text: Markdown
    tone: Tone = Tone.NEUTRAL


@dataclass(frozen=True)
class Heading:
    """The title of a part of a section."""

    text: Markdown


@dataclass(frozen=True)
class Noted:
    """An item of a list with a remark of its own below it."""

    text: Markdown
    note: Markdown


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: Sequence[Markdown | Noted]


@dataclass(frozen=True)
class Folded:
    """A cell whose origin can be opened, where the writer can fold; `lines` are what it is drawn from."""

    summary: Markdown
    lines: Sequence[Markdown]


Cell = Markdown | Folded


@dataclass(frozen=True)
class Table:
    """`columns`: title to alignment, "l" or "r"; the first column names its row. `caption`: what the table shows.

    `anchors`: a name per row, to which figures can lead; empty for none. `extra`: rows that are shown only where
    there is room for very many. `total`: how many rows there would be in all, where some are left out; `noun` says
    what they are. `folded`: it repeats in numbers what a figure shows; HTML shows it closed.
    """

    caption: Markdown
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Cell]]
    anchors: Sequence[str] = ()
    extra: frozenset[int] = frozenset()
    total: int = 0
    noun: str = "row"
    folded: bool = False

    def left_out(self, num_shown: int) -> Markdown:
        """A sentence on the rows that a writer does not show; empty when it shows all."""
        left = max(self.total, len(self.rows)) - num_shown
        return Markdown(f"{count(left, self.noun)} left out.") if left else Markdown("")


@dataclass(frozen=True)
class Code:
    """Text to be read as it is: a command, lines of a log. Not escaped; the writers see to that."""

    lines: Sequence[str]
    language: str = "text"
    limit: int = MAX_LINE

    @property
    def shown(self) -> list[str]:
        """The lines as a screen takes them."""
        return bare(self.lines, self.limit)


@dataclass(frozen=True)
class Figure:
    """A drawing. `svg` comes from analysis/plots, where all text in it is escaped; `words` say what it shows.

    `legend`: a symbol, as SVG, and what it stands for.
    """

    title: Markdown
    words: Markdown
    svg: Markup
    legend: Sequence[tuple[Markup, str]] = ()


Block = Paragraph | Statement | Heading | Bullets | Table | Code | Figure


@dataclass(frozen=True)
class Section:
    """A titled part of the report. `folded`: of interest only to who looks for it; HTML shows it closed."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False

    @property
    def anchor(self) -> str:
        """The name that links use, as Markdown pages make it of a title."""
        return re.sub(r"[^a-z0-9 -]", "", self.title.lower()).replace(" ", "-")

    def tables(self) -> Iterator[Table]:
        """The tables in it."""
        return (block for block in self.blocks if isinstance(block, Table))


@dataclass(frozen=True)
class Document:
    """A report: what it is about, and its sections in the order in which they are read."""

    title: Markdown
    lead: Bullets
    sections: Sequence[Section]
