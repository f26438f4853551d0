"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.blocks import (
    Block,
    Bullets,
    Cell,
    Code,
    Document,
    Figure,
    Folded,
    Heading,
    Noted,
    Paragraph,
    Section,
    Statement,
    Table,
)
from analysis.markup import Markdown, bold, fenced


def markdown(document: Document) -> str:
    """The whole report. Figures are given in words: Markdown has no drawings that a mailbox would show."""
    head = [f"# {document.title}", "", *_bullets(document.lead)]
    parts = [head, *(section_lines(section) for section in document.sections)]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def section_lines(section: Section) -> list[str]:
    """The lines of one section, its title first."""
    lines = [f"## {section.title}"]
    for block in section.blocks:
        lines += ["", *_lines(block)]
    return lines


def _lines(block: Block) -> list[str]:
    match block:
        case Paragraph(text):
            return [text]
        case Statement(text):
            return [bold(text)]
        case Heading(text):
            return [f"### {text}"]
        case Bullets():
            return _bullets(block)
        case Table():
            return _table(block)
        case Code(lines, language, limit):
            return fenced(lines, language, limit)
        case Figure(title, words):
            return [f"{bold(title)}: {words}"]


def _bullets(block: Bullets) -> list[str]:
    lines: list[str] = []
    for item in block.items:
        lines += [f"- {item.text}", f"  - {item.note}"] if isinstance(item, Noted) else [f"- {item}"]
    return lines


def _table(block: Table) -> list[str]:
    rule = " | ".join("---:" if side == "r" else ":---" for side in block.columns.values())
    rows = [_row(row) for index, row in enumerate(block.rows) if index not in block.extra]
    left_out = block.left_out(len(rows))
    return [f"| {' | '.join(block.columns)} |", f"| {rule} |", *rows, *(["", left_out] if left_out else [])]


def _row(cells: Sequence[Cell]) -> str:
    return f"| {' | '.join(_text(cell) for cell in cells)} |"


def _text(cell: Cell) -> Markdown:
    return cell.summary if isinstance(cell, Folded) else cell
