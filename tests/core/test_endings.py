"""How the program ends after errors that came one during the other."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import SQLAlchemyError

from sweeper.endings import ending_of
from sweeper.errors import ExitCode, NightOver, SweepInterrupted


def ended(first: BaseException) -> tuple[ExitCode, str]:
    """What is told where the database fails while `first` is on its way out."""
    with pytest.raises(SQLAlchemyError) as seen:
        try:
            raise first
        finally:
            raise SQLAlchemyError("connection refused")
    found = ending_of(seen.value)
    return found.code, found.text


def test_a_database_that_is_away_makes_no_fault_of_an_interruption() -> None:
    code, text = ended(SweepInterrupted(ExitCode.TERMINATED))
    assert code is ExitCode.TERMINATED
    assert "interrupted" in text
    assert "connection refused" in text


@pytest.mark.parametrize("first", [NightOver(), ValueError("x")])
def test_the_end_of_a_night_and_other_errors_leave_the_database_s_fault_as_it_is(first: BaseException) -> None:
    code, text = ended(first)
    assert code is ExitCode.ABORTED
    assert text.startswith("stopped: ")
