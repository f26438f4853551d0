"""A report as one page of HTML: no script, nothing loaded; for a mailbox, the dark, a phone and paper."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import groupby

from markupsafe import Markup, escape

from analysis.blocks import Block, Cell, Document, Figure, Folded, Noted, Section, Table
from analysis.templating import rendered, source

_RICH = re.compile(r"\*\*(?P<bold>.+?)\*\*|`(?P<code>[^`]+)`|\[(?P<text>[^\]]+)\]\(#(?P<anchor>[a-z0-9-]+)\)")
"""What of Markdown our own words use within a line. Text from outside cannot: to markup.py it is entities."""

_LONG = 25
"""Characters; a cell with more is given room, so that it does not become a column of single words."""

_ENTITY = re.compile(r"&#\d+;")


def html(document: Document) -> str:
    """The whole page."""
    return str(
        rendered(
            "page.html.j2",
            document=document,
            sections=_views(document),
            style=source("style.css"),
            rich=rich,
            plain=plain_text,
            kind=lambda block: type(block).__name__,
            is_folded=lambda cell: isinstance(cell, Folded),
            is_long=lambda cell: isinstance(cell, str) and len(cell) > _LONG,
            is_noted=lambda item: isinstance(item, Noted),
        )
    )


def _views(document: Document) -> list[_View]:
    seen: Counter[str] = Counter()
    views = []
    for section in document.sections:
        seen[section.anchor] += 1
        times = seen[section.anchor]
        views.append(_View(section, f"{section.anchor}-{times}" if times > 1 else section.anchor))
    return views


def rich(text: str) -> Markup:
    """A line of Markdown as HTML. Whatever is not one of our own marks is text, and escaped as such."""
    return Markup("").join(_pieces(text))


def plain_text(text: str) -> str:
    """A line of Markdown without its marks."""
    return str(rich(text).striptags())


def _pieces(text: str) -> Iterator[Markup]:
    at = 0
    for found in _RICH.finditer(text):
        yield _text(text[at : found.start()])
        at = found.end()
        if found["bold"]:
            yield Markup("<strong>{}</strong>").format(rich(found["bold"]))
        elif found["code"]:
            yield Markup("<code>{}</code>").format(_text(found["code"]))
        else:
            yield Markup('<a href="#{}">{}</a>').format(found["anchor"], _text(found["text"]))
    yield _text(text[at:])


def _text(text: str) -> Markup:
    return escape(_ENTITY.sub(lambda found: unescape(found[0]), text))


@dataclass(frozen=True)
class _View:
    """A section as the template goes through it. `anchor`: its name in links, which no other one has."""

    section: Section
    anchor: str

    @property
    def groups(self) -> list[tuple[bool, list[Block]]]:
        """The blocks; figures that follow one another stand side by side."""
        return [
            (figures, list(group))
            for figures, group in groupby(self.section.blocks, key=lambda block: isinstance(block, Figure))
        ]

    def rows(self, table: Table) -> list[tuple[str, Sequence[tuple[str, Cell]]]]:
        """Of each row its anchor, and its cells with the sides that they are aligned to."""
        sides = list(table.columns.values())
        anchors = [*table.anchors, *[""] * (len(table.rows) - len(table.anchors))]
        return [
            (anchor, list(zip(sides, row, strict=True))) for anchor, row in zip(anchors, table.rows, strict=True)
        ]
