"""Every mistake of the table: one message with the place and the fix, nothing started, nothing written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeper.errors import ExitCode
from tests.mistakes.made import make
from tests.mistakes.more import ALONE, MORE
from tests.mistakes.table import TABLE, Mistake
from tests.mistakes.written import PAGE, in_general, page

pytestmark = [pytest.mark.compose, pytest.mark.study]

_SAID: dict[Mistake, str] = {}


@pytest.fixture(scope="module", autouse=True)
def _wide(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NOT_SET_AT_ALL", raising=False)
        for name in ("LOGNAME", "USER"):
            patch.setenv(name, "you")
        yield


@pytest.mark.parametrize("mistake", TABLE, ids=[mistake.told_of for mistake in TABLE])
def test_a_mistake_is_one_message_with_the_place_and_the_fix(mistake: Mistake, tmp_path: Path) -> None:
    outcome = make(mistake, tmp_path)
    assert outcome.code == mistake.code, outcome.err
    assert [part for part in mistake.says if part not in outcome.err] == [], outcome.err
    assert outcome.err.startswith("specsweep: ")
    assert outcome.err.count("specsweep: ") == 1
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert outcome.written == ()
    _SAID[mistake] = in_general(outcome.err, tmp_path)


@pytest.mark.parametrize("mistake", MORE, ids=[mistake.told_of for mistake in MORE])
def test_so_is_a_mistake_in_a_trap(mistake: Mistake, tmp_path: Path) -> None:
    test_a_mistake_is_one_message_with_the_place_and_the_fix(mistake, tmp_path)
    del _SAID[mistake]


@pytest.mark.parametrize("mistake", [one for one in MORE if one.told_of in ALONE], ids=lambda one: one.told_of)
def test_one_mistake_is_told_once(mistake: Mistake, tmp_path: Path) -> None:
    said = make(mistake, tmp_path).err
    assert said.count("\n") <= 2, said


def test_the_table_is_large_and_names_each_mistake_once() -> None:
    assert len(TABLE) >= 45
    assert len({mistake.told_of for mistake in (*TABLE, *MORE)}) == len(TABLE) + len(MORE)
    assert {mistake.code for mistake in TABLE} >= {ExitCode.USAGE, ExitCode.ABORTED}


def test_the_page_shows_what_is_said_now() -> None:
    if len(_SAID) < len(TABLE):
        pytest.skip("needs all of the table")
    assert PAGE.read_text(encoding="utf-8") == page({mistake: _SAID[mistake] for mistake in TABLE})
