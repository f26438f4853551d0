from __future__ import annotations

import errno
import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from sweeper.streams import SPELT, lenient


class Breaking(io.StringIO):
    """A stream that fails for good, like a pipe without a reader or a full disk."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code
        self.broken = False
        self.failures = 0

    def write(self, text: str) -> int:
        if self.broken:
            self.failures += 1
            raise OSError(self.code, "it broke")
        return super().write(text)

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("code", [errno.EPIPE, errno.EIO, errno.ENOSPC])
def test_a_reader_that_goes_away_ends_nothing_and_is_not_bothered_again(code: int) -> None:
    behind = Breaking(code)
    console = Console(file=lenient(behind), color_system=None)
    console.print("heard")
    behind.broken = True
    console.print("unheard")
    behind.broken = False
    console.print("nor this")
    assert behind.getvalue() == "heard\n"
    assert behind.failures == 1


def test_a_stream_that_works_gets_everything(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as file:
        stream = lenient(file)
        stream.write("one ")
        stream.write("two")
        stream.flush()
        assert (tmp_path / "log").read_text() == "one two"
        assert not stream.isatty()
        assert stream.fileno() == file.fileno()


def written(text: str, encoding: str) -> str:
    behind = io.BytesIO()
    stream = io.TextIOWrapper(behind, encoding=encoding, errors=SPELT)
    stream.write(text)
    stream.flush()
    return behind.getvalue().decode(encoding)


def test_a_terminal_without_a_sign_for_it_shows_another_spelling() -> None:
    text = "≈ 91 °C, 2 × NV18 … “yes” — Ж"
    assert written(text, "utf-8") == text
    assert written(text, "ascii") == '~ 91  C, 2 x NV18 ... "yes" - \\u0416'
    assert written("2 × 5 °C", "latin-1") == "2 × 5 °C"


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_what_draws_knows_the_encoding_of_the_stream_behind(encoding: str) -> None:
    console = Console(file=lenient(io.TextIOWrapper(io.BytesIO(), encoding=encoding)))
    assert console.encoding == encoding
    assert console.options.ascii_only == (encoding == "ascii")


def test_a_full_disk_is_an_error_where_what_is_printed_is_all_there_is() -> None:
    full = Breaking(errno.ENOSPC)
    full.broken = True
    with pytest.raises(OSError, match="it broke"):
        lenient(full, needs_disk=True).write("a table")
    nobody = Breaking(errno.EPIPE)
    nobody.broken = True
    assert lenient(nobody, needs_disk=True).write("a table") == len("a table")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("behind", "kept"), [(io.StringIO, "a\n  b\n"), (Terminal, "a  \n  b \n")])
def test_only_a_terminal_gets_the_blanks_at_the_ends_of_lines(behind: type[io.StringIO], kept: str) -> None:
    stream = behind()
    lenient(stream).write("a  \n  b \n")
    assert stream.getvalue() == kept


def test_a_table_that_is_piped_ends_where_its_words_end() -> None:
    stream = io.StringIO()
    grid = Table.grid(padding=(0, 1))
    grid.add_row("label", "words enough to be folded into several lines of different length")
    console = Console(file=lenient(stream), width=40)
    console.print(grid)
    console.print(Padding("set in", (0, 0, 0, 2)))
    lines = stream.getvalue().splitlines()
    assert len(lines) > 2
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[-1] == "  set in"
