"""`--help` on terminals of any width."""

from __future__ import annotations

import argparse

import pytest

from sweeper.usage.command_line import new_parser
from sweeper.usage.help_format import HelpFormatter
from sweeper.usage.table import USAGES

OF_ARGPARSE = ("usage:", "positional arguments:", "options:")
TEXT = """\
Prose that is written on
two lines, and goes on.

  specsweep run                 does it
  specsweep run a=1 b=2         does it with two settings, and says
                                so
  specsweep run a=1 \\
      b=2
                                over two lines

exit codes:
    0  done: everything is as it should be
"""


def laid_out(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    parser = argparse.ArgumentParser(prog="x", epilog=TEXT, formatter_class=HelpFormatter, add_help=False)
    return parser.format_help().partition("\n\n")[2].splitlines()


def test_where_it_fits_it_stays_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert laid_out(100, monkeypatch) == TEXT.splitlines()


def test_a_narrow_terminal_gets_explanations_below_their_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert laid_out(34, monkeypatch) == [
        "Prose that is written on two",
        "lines, and goes on.",
        "",
        "  specsweep run",
        "      does it",
        "  specsweep run a=1 b=2",
        "      does it with two settings,",
        "      and says so",
        "  specsweep run a=1 \\",
        "      b=2  over two lines",
        "",
        "exit codes:",
        "    0  done: everything is as it",
        "       should be",
    ]


@pytest.mark.parametrize("columns", [40, 60, 80])
@pytest.mark.parametrize("command", USAGES)
def test_nothing_but_a_command_is_wider_than_the_terminal(
    command: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        new_parser().parse_args([command, "--help"])
    parts = [part for part in capsys.readouterr().out.split("\n\n") if not part.startswith(OF_ARGPARSE)]
    wide = [line for part in parts for line in part.splitlines() if len(line) > columns]
    assert [line for line in wide if not line.startswith("  ")] == [], "commands are not broken"
