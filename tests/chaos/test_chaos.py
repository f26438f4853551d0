"""The fault table's own checks can fail, its page is up to date, and a few rows are played in CI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from sweeper.records import TrialRecord, TrialState
from tests.chaos.audit import Ledger, doubled, unfinished
from tests.chaos.boundaries import ROOT
from tests.chaos.kills import EXIT_CODES, KINDS, Strike
from tests.chaos.kinds import all_rows
from tests.chaos.stage import House
from tests.chaos.statements import statement
from tests.chaos.table import Row, play
from tests.chaos.written import kills, steady, table
from tests.chaos.zygote import Zygote
from tests.fakes import trial

PAGE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
QUICK = [row for row in all_rows() if row.is_quick]


@dataclass
class Books:
    """A study that says what a test wants."""

    said: tuple[TrialRecord, ...] = ()

    def trials(self) -> tuple[TrialRecord, ...]:
        return self.said


def test_a_ledger_misses_a_launch_that_is_gone_and_a_value_that_changed() -> None:
    books, ledger = Books((trial(0, [50.0]), trial(1, [60.0, 61.0], n=1))), Ledger()
    ledger.read(books)
    assert ledger.lost == []
    books.said = (trial(0, [51.0]), trial(1, [60.0], n=1))
    ledger.read(books)
    assert len(ledger.lost) == 2


def test_a_ledger_misses_a_trial_that_is_open_again() -> None:
    books, ledger = Books((trial(0, [50.0]),)), Ledger()
    ledger.read(books)
    books.said = (trial(0, [50.0], state=TrialState.RUNNING),)
    ledger.read(books)
    assert len(ledger.lost) == 1


def test_a_configuration_that_is_measured_twice_is_a_double() -> None:
    assert doubled((trial(0, [50.0]), trial(1, [60.0], n=1))) == []
    assert len(doubled((trial(1, [60.0], n=1), trial(2, [60.0], n=1)))) == 1
    assert doubled((trial(1, [60.0, 61.0], n=1),)) == ["trial 1: measured twice in the search"]


def test_an_unfinished_trial_is_left_behind() -> None:
    assert unfinished((trial(3, state=TrialState.RUNNING), trial(0, [50.0]))) == ["trial 3 is unfinished"]


def test_the_texts_of_statements_are_read_from_the_protocol() -> None:
    assert statement(b"Q", b"BEGIN\0") == b"BEGIN"
    assert statement(b"P", b"name\0SELECT 1\0\0\0") == b"SELECT 1"
    assert statement(b"B", b"portal\0name\0") == b""


def test_every_kind_of_strike_has_its_exit_codes() -> None:
    assert set(KINDS) == set(EXIT_CODES)
    assert not Strike("one host", "SIGTERM", "random", 1).is_expected


def test_rows_have_names_of_their_own_and_stand_on_the_page() -> None:
    names = [row.name for row in all_rows()]
    assert len(names) == len(set(names)) >= 38
    assert [name for name in names if f"| {name} |" not in PAGE] == []


def test_everything_on_the_page_came_out_as_expected() -> None:
    rows = [
        line for line in PAGE.splitlines() if line.startswith("| ") and line.endswith(("yes |", "no |", "run |"))
    ]
    assert len(rows) == len(all_rows())
    assert [row for row in rows if row.endswith("no |")] == []


def test_the_page_shows_the_last_play_of_a_row() -> None:
    row = all_rows()[0]
    told = {"fault": row.name, "where": "w", "how": "a|b", "expected": "e", "seen": ["s"], "missing": ""}
    text = table([{**told, "mark": "no"}, {**told, "mark": "yes"}])
    assert text.splitlines()[2:] == [f"| 1 | {row.name} | w | a\\|b | e | s | yes |"]


def test_what_changes_from_run_to_run_is_not_on_the_page() -> None:
    said = (
        'says "77 on vm, since 2026-11-30T14:52:44+00:00: /x/rows/row-3/a"; server 75b3a282f56586be at 127.0.0.1:4'
    )
    assert steady(said) == 'says "N on vm, since TIME: FOLDER/a"; server ID at 127.0.0.1:PORT'


def test_kills_are_counted_by_sweep_and_kind() -> None:
    strikes = [{"sweep": "one", "kind": "kill -9", "at": at} for at in ("random", "a:1", "a:1")]
    assert kills(strikes).splitlines()[-1] == "| all | 3 | 0 | 0 | 0 | 0 | 3 | 2 | 1 |"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with Zygote() as zygote, ExitStack() as stack:
        yield House(tmp_path_factory.mktemp("house"), zygote, stack)


@pytest.mark.slow
@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
def test_a_row_comes_out_as_expected(row: Row, house: House, tmp_path: Path) -> None:
    done = play(row, tmp_path / "row", house)
    assert done.wrong == ()
    assert done.seen
