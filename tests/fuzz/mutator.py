"""Bytes that are almost what a program expects: the same for the same seed, in every process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

MAX_BYTES = 12_000

NASTY = (
    b"\x00", b"\xff\xfe", b"\x1b[31m", b"\x1b]0;title\x07", b"\r", b"\r\n", b"\n", b"\x85", b"\xe2\x80\xae",
    b"\xe2\x80\xa8", b"\xed\xa0\x80", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b"<script>", b"</td>", b"|", b"`",
    b"../../x", b"~", b"/", b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1", b"0", b"-0.0", b"1e308",
    b"99999999999999999999", b"9" * 5000, b"0x" + b"f" * 40, b"true", b"null", b"[]", b"{}", b'""', b"[" * 3000,
    b'{"a":' * 2000, b"%s", b"%n", b"$(x)", b",", b";", b":", b"=", b" ", b"\t", b"#", b"--", b"data: ", b"[DONE]",
    b"end 0", b"begin x", b"@specsweep ", "\u0663".encode(), "\u2167".encode(), "\u00b2".encode(),
    "\u0130".encode(), b"[N/A]", b"MiB", b"GPU",
)  # fmt: skip
"""What has broken parsers before."""


def mutated(seeds: Sequence[bytes], index: int, name: str) -> bytes:
    """Input number `index` for the parser `name`, made of one seed or two, with up to eight changes."""
    draw = random.Random(f"{name} {index}")
    content = draw.choice(seeds)
    if draw.random() < 0.02:
        return draw.randbytes(draw.randrange(200))
    for _ in range(draw.choice((1, 1, 2, 3, 5, 8))):
        content = draw.choice(_CHANGES)(content, draw, seeds)[:MAX_BYTES]
    return content


def inputs(seeds: Sequence[bytes], count: int, name: str) -> Iterator[bytes]:
    """The seeds as they are, then `count` inputs made of them."""
    yield from seeds
    for index in range(count):
        yield mutated(seeds, index, name)


def _flip(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    if not content:
        return content
    place = draw.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]


def _insert(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    place = draw.randrange(len(content) + 1)
    return content[:place] + draw.choice(NASTY) + content[place:]


def _replace_number(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """A run of digits, somewhere behind a random place, becomes something else."""
    start = draw.randrange(len(content) + 1)
    while start < len(content) and not content[start : start + 1].isdigit():
        start += 1
    end = start
    while end < len(content) and content[end : end + 1].isdigit():
        end += 1
    return content[:start] + draw.choice(NASTY) + content[end:]


def _cut(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = sorted(draw.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[end:] if draw.random() < 0.7 else content[:end]


def _double(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    start = draw.randrange(len(content) + 1)
    piece = content[start : start + draw.choice((1, 8, 60, 400))]
    return content[:start] + piece * draw.choice((2, 3, 30)) + content[start:]


def _splice(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = draw.choice(seeds)
    return content[: draw.randrange(len(content) + 1)] + other[draw.randrange(len(other) + 1) :]


def _swap_lines(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    lines = content.split(b"\n")
    first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


_CHANGES: tuple[Callable[[bytes, random.Random, Sequence[bytes]], bytes], ...] = (
    _flip,
    _insert,
    _replace_number,
    _cut,
    _double,
    _splice,
    _swap_lines,
)
