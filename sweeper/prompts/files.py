"""A file of prompts: read, checked, and some of them chosen.

One JSON object per line (JSONL), or one JSON list of objects; rows.py says what an object may look like.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sweeper.prompts.rows import LeftOut, Row, read_row
from sweeper.text import plain
from sweeper.workload_spec import Prompt

MAX_FILE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class PromptFile:
    """The prompts of a file, in its order. `left_out`: how many rows have none and why, in words."""

    prompts: tuple[Prompt, ...]
    left_out: str = ""


def read_prompts(path: Path) -> PromptFile:
    """What a file holds. Raises ValueError: file, line, what is wrong; the first mistake.

    Conversations without a question are left out, but where most are empty the file is refused.
    """
    found: list[tuple[str, Row]] = []
    mistakes: list[str] = []
    left_out: dict[LeftOut, list[str]] = {why: [] for why in LeftOut}
    try:
        for where, raw in _rows(_content(path)):
            try:
                row = read_row(raw)
            except ValueError as error:
                mistakes.append(f"{where}: {error}")
            else:
                if isinstance(row, Row):
                    found.append((where, row))
                else:
                    left_out[row].append(where)
    except ValueError as error:
        mistakes.append(str(error))
    mistakes += _twice(found)
    mistakes = mistakes or _too_few(len(found), left_out)
    if mistakes:
        more = f" (and {len(mistakes) - 1} more mistakes)" if len(mistakes) > 1 else ""
        raise ValueError(f"{path}: {mistakes[0]}{more}")
    names = _distinct(row.name for _, row in found)
    prompts = tuple(
        Prompt(id=name, text=row.text, prompt_class=row.prompt_class)
        for name, (_, row) in zip(names, found, strict=True)
    )
    return PromptFile(prompts, _told(len(found), left_out))


def _too_few(num_found: int, left_out: Mapping[LeftOut, Sequence[str]]) -> list[str]:
    """Why there are too few prompts, if there are."""
    num_empty, num_cut = len(left_out[LeftOut.EMPTY]), len(left_out[LeftOut.CUT])
    total = num_found + num_empty + num_cut
    if not num_found:
        why = f": none of its {total:,} conversations begins with a question" if total else ""
        return [f"holds no prompts{why}"]
    if 2 * num_empty > total:
        first = left_out[LeftOut.EMPTY][0]
        return [f"{first}: holds no question, as {num_empty:,} of its {total:,} conversations: is the file whole?"]
    return []


def _told(num_found: int, left_out: Mapping[LeftOut, Sequence[str]]) -> str:
    """`1 of 300 rows is left out: 1 without a question (the first: line 3)`."""
    counts = [f"{len(places):,} {why} (the first: {places[0]})" for why, places in left_out.items() if places]
    total = sum(map(len, left_out.values()))
    rows = f"{total:,} of {num_found + total:,} rows {'are' if total > 1 else 'is'} left out"
    return f"{rows}: {', '.join(counts)}" if total else ""


def choose(keys: Sequence[tuple[str, str]], count: int, seed: int) -> list[int]:
    """The indices, in order, of `count` of the prompts whose (id, class) are `keys`; as many of each class.

    The same for the same `seed`, whatever the order of the prompts; more of them include the fewer.
    """

    def drawn(*words: str) -> str:
        return hashlib.sha256(" ".join((str(seed), *words)).encode("utf-8", "surrogatepass")).hexdigest()

    seen: Counter[str] = Counter()
    rounds: dict[int, int] = {}
    for index in sorted(range(len(keys)), key=lambda i: drawn(*keys[i])):
        rounds[index] = seen[keys[index][1]]
        seen[keys[index][1]] += 1
    turns = sorted(rounds, key=lambda index: (rounds[index], drawn(keys[index][1])))
    return sorted(turns[:count])


def _content(path: Path) -> str:
    """The text of a file. Raises ValueError."""
    try:
        if not path.is_file():
            raise ValueError("is not a file" if path.exists() else "there is no such file")
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            limit = f"{MAX_FILE_BYTES // 1024**2} MiB"
            raise ValueError(f"has {size // 1024**2} MiB, more than {limit}; cut out the part you need")
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: is not UTF-8 ({error.reason}); save it as UTF-8") from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror or error}") from None


def _rows(content: str) -> Iterator[tuple[str, object]]:
    """Each row with where it begins, in words. Raises ValueError where JSON ends."""
    if content.lstrip()[:1] == "[":
        yield from _listed(content)
        return
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            with _in_line(number):
                row = json.loads(line)
            yield f"line {number}", row


def _listed(content: str) -> Iterator[tuple[str, object]]:
    """The entries of one JSON list, one by one: an entry is known by its line, and by its number in a long one."""
    decoder = json.JSONDecoder()
    place = _after_blanks(content, content.index("[") + 1)
    line = content.count("\n", 0, place) + 1
    number = last = 0
    while content[place : place + 1] != "]":
        with _in_line(line):
            row, end = decoder.raw_decode(content, place)
        number += 1
        yield f"line {line}, entry {number}" if line == last else f"line {line}", row
        last = line
        end = _after_blanks(content, end)
        if content[end : end + 1] == ",":
            end = _after_blanks(content, end + 1)
        elif content[end : end + 1] != "]":
            raise ValueError(f"line {line}: after this entry a comma or the list's end is missing")
        line += content.count("\n", place, end)
        place = end
    if _after_blanks(content, place + 1) < len(content):
        raise ValueError(f"line {line}: something stands behind the end of the list")


def _after_blanks(content: str, place: int) -> int:
    while content[place : place + 1] in (" ", "\t", "\r", "\n"):
        place += 1
    return place


@contextlib.contextmanager
def _in_line(number: int) -> Iterator[None]:
    """Raises ValueError with the line for what json raises."""
    try:
        yield
    except RecursionError:
        reason = "it is nested too deeply"
    except json.JSONDecodeError as error:
        reason = error.msg
    except ValueError as error:  # a number of thousands of digits
        reason = str(error)
    else:
        return
    about = f"is not JSON ({plain(reason, 80)})"
    raise ValueError(f"line {number}: {about}; a line holds one object, or the file one list of them")


def _twice(rows: Sequence[tuple[str, Row]]) -> list[str]:
    """A line for each id that the file gives a second time."""
    first: dict[str, int] = {}
    return [
        f"{where}: the id {row.name!r} is that of {rows[first[row.name]][0]}"
        for index, (where, row) in enumerate(rows)
        if row.named and first.setdefault(row.name, index) != index
    ]


def _distinct(names: Iterable[str]) -> Iterator[str]:
    """The names, the second of two equal ones with -2 behind it, and so on."""
    taken: set[str] = set()
    for name in names:
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name}-{number}"
        taken.add(free)
        yield free
