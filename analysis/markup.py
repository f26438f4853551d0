"""Markdown that hostile text cannot break: escaped text, fenced blocks, numbers with their units.

Text from a server, a log or a prompt file is data. Everything that Markdown or HTML gives a meaning is written
as an HTML entity: by CommonMark an entity never stands for structure, so no renderer sees a tag or a new cell.
"""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import NewType

from sweeper.metrics import METRICS
from sweeper.text import plain, without_codes

Markdown = NewType("Markdown", str)
"""Text that is safe in the middle of a line of Markdown. Plain `str` is not: mypy keeps the two apart."""

MISSING = Markdown("–")
"""Stands for every value that was not measured; 0 never does."""

ESTIMATED = "≈"
"""Stands before a value that is an estimate, since its measuring ended early."""

ESTIMATES = f"{ESTIMATED} marks an estimate: measuring ended early, since too far behind the best to matter."

MAX_CELL = 300
MAX_LINE = 300

_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&]|(?<![^\W_])_|_(?![^\W_])")


def inline(value: object, limit: int = MAX_CELL) -> Markdown:
    """Any value as harmless Markdown on one line; an empty text as a dash."""
    escaped = _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", plain(str(value), limit))
    return Markdown(escaped) if escaped else MISSING


def bold(text: Markdown) -> Markdown:
    """`text` in bold; a dash stays as it is, and so does an estimate."""
    return text if text == MISSING or text.startswith(ESTIMATED) else Markdown(f"**{text}**")


def link(text: str, anchor: str) -> Markdown:
    """A link to a place in the same report. Both are our own words."""
    return Markdown(f"[{text}](#{anchor})")


def number(metric: str, value: float | None, *, unit: bool = False, estimated: bool = False) -> Markdown:
    """A value of METRICS with that metric's digits, and its unit if asked for; a dash for None.

    An estimated one is marked: `≈ 55.1`.
    """
    if value is None:
        return MISSING
    row = METRICS[metric]
    mark = f"{ESTIMATED} " if estimated else ""
    return Markdown(f"{mark}{row.format(value)} {row.unit if unit else ''}".rstrip())


def heading(metric: str) -> str:
    """A metric's column title: label and unit."""
    row = METRICS[metric]
    return f"{row.label} ({row.unit})" if row.unit else row.label


def bare(lines: Iterable[str], limit: int = MAX_LINE) -> list[str]:
    """Lines to be read as they are: without terminal codes and control characters, each of at most `limit`."""
    content = [without_codes(line[: 10 * limit + 1000]) for line in lines]
    content = ["".join(c for c in line.expandtabs(4) if c.isprintable()) for line in content]
    return [line if len(line) <= limit else line[: limit - 1] + "…" for line in content]


def fenced(lines: Iterable[str], language: str = "text", limit: int = MAX_LINE) -> list[str]:
    """A code block. Its fence is longer than any run of backticks inside, so nothing inside can end it."""
    content = bare(lines, limit)
    longest = max((len(run) for line in content for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *content, fence]


def shell_words(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """A command as lines to paste into bash: one flag with its values per line, every word quoted."""
    settings = [f"{name}={_quoted(value)}" for name, value in sorted(env.items())]
    lines = [" ".join(["env", *settings])] if settings else []
    for index, word in enumerate(argv):
        if word.startswith("-") or not index:
            lines.append(_quoted(word))
        else:
            lines[-1] += f" {_quoted(word)}"
    return [f"{'  ' if i else ''}{line}{_continued(i, lines)}" for i, line in enumerate(lines)]


def _continued(index: int, lines: Sequence[str]) -> str:
    return " \\" if index < len(lines) - 1 else ""


def _quoted(word: str) -> str:
    """`word` for bash; with control characters spelt out, which would otherwise be lost on the way."""
    if word.isprintable():
        return shlex.quote(word)
    spelt = (
        character
        if character.isprintable() and character not in "\\'"
        else "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "replace"))
        for character in word
    )
    return f"$'{''.join(spelt)}'"


def moment(at: datetime.datetime) -> Markdown:
    """A point in time, in UTC."""
    return Markdown(at.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S"))


def duration(seconds: float | None) -> Markdown:
    """A length of time as a person says it; a dash for None."""
    if seconds is None:
        return MISSING
    if seconds < 60:
        return Markdown(f"{seconds:.1f} s")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return Markdown(f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s")


def listed(numbers: Iterable[int], limit: int = 20) -> Markdown:
    """Numbers separated by commas; of many, the first `limit`."""
    values = list(numbers)
    more = f" and {len(values) - limit} more" if len(values) > limit else ""
    return Markdown(", ".join(map(str, values[:limit])) + more)


def trials(numbers: Iterable[int]) -> Markdown:
    """`trial 3`, `trials 3, 4`."""
    values = list(numbers)
    return Markdown(f"trial{'' if len(values) == 1 else 's'} {listed(values)}")


def count(number_of: int, noun: str) -> Markdown:
    """`1 launch`, `2 launches`, `3 trials`."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return Markdown(f"{number_of} {noun if number_of == 1 else plural}")
