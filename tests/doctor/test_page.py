"""The page: grouped, worst first in the summary, readable at any width, and the same facts off a terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from sweeper.commands.doctor import show
from sweeper.doctor.context import Context
from sweeper.doctor.examination import Report, examine, refused, report_of
from sweeper.doctor.finding import Check, Finding, Level, Place, Said
from sweeper.doctor.table import CHECKS, PLACES, markdown
from sweeper.errors import ConfigError
from tests.doctor.asking import context
from tests.fakes import EPOCH

DOCS = Path(__file__).parents[2] / "docs" / "doctor.md"
LONG = "pid 4711: python train.py --with a very long command line that goes on and on, 70000 MiB"


def finding(level: Level, check: str = "gpu_memory", place: Place = Place.GPUS, fix: str = "") -> Finding:
    return Finding(place=place, host="gpu1", check=check, level=level, reason=LONG, fix=fix)


def report(*findings: Finding) -> Report:
    return report_of(findings, "night", EPOCH, 12.3)


MIXED = report(
    finding(Level.OK, "login", Place.WAY),
    finding(Level.WARNING, "limits", Place.HOST, "ulimit -n 65536"),
    finding(Level.ERROR, fix="end these processes"),
    finding(Level.ERROR, fix="end these processes"),
    finding(Level.WAITING, "mig"),
)


def screen(of: Report, width: int, *, terminal: bool = True) -> str:
    file = io.StringIO()
    show(of, Console(file=file, width=width, force_terminal=terminal, color_system=None, legacy_windows=False))
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_summary_cuts_reasons_and_nothing_else(width: int) -> None:
    summary = screen(MIXED, width).partition("12 s")[2]
    assert "warning limits        pid 4711" in summary
    assert "error   gpu_memory    pid 4711" in summary


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_is_never_overrun_and_nothing_is_cut(width: int) -> None:
    shown = screen(MIXED, width)
    assert max(map(len, shown.splitlines())) <= width
    assert "".join(LONG.split()) in "".join(shown.split())


def test_the_summary_has_the_worst_first_and_the_end_says_what_to_do() -> None:
    end = screen(MIXED, 500).partition("2 errors, 1 warning, 1 ok, 1 not looked at, in 12 s")[2]
    assert end.index("gpu_memory") < end.index("limits")
    assert "1. end these processes (gpu_memory on gpu1)\n" in end
    assert "2." not in end


def test_off_a_terminal_each_thing_is_one_line_without_codes() -> None:
    shown = screen(MIXED, 40, terminal=False)
    assert "\x1b" not in shown
    assert f"warning limits        {LONG} | fix: ulimit -n 65536\n" in shown


def test_what_all_waits_for_the_same_stands_on_one_line() -> None:
    mistake = ConfigError(["budget.trails: unknown name"])
    shown = screen(report(*refused(mistake)), 400)
    assert "\nGPUs\nwaits                 gpus, gpu_count," in shown
    assert shown.count("waits ") == len(PLACES)
    assert "1. correct budget.trails (configuration)" in shown


def test_one_fix_for_several_findings_is_told_once() -> None:
    assert screen(MIXED, 500).partition("2 errors")[0].count("fix: end these processes") == 1


def test_ready_is_the_last_word() -> None:
    assert screen(report(finding(Level.OK)), 80).endswith("\nready\n")
    assert screen(report(finding(Level.WARNING)), 80).endswith("\nready, with 1 warning\n")


def test_a_setting_to_change_weighs_more_than_what_is_to_be_mended() -> None:
    wrong = finding(Level.ERROR).model_copy(update={"is_setting": True})
    codes = [
        report(*found).exit_code for found in ((), (finding(Level.WARNING),), (finding(Level.ERROR),), (wrong,))
    ]
    assert codes == [0, 0, 5, 2]
    assert report(finding(Level.ERROR), wrong).exit_code == 2


def test_codes_and_secrets_of_what_was_told_are_not_shown() -> None:
    (first, *_) = refused(ConfigError(["engine.env.HF_TOKEN=hf_abcdefghijklmnopqrst \x1b[31m: wrong"]))
    assert first.reason == "engine.env.HF_TOKEN=*** : wrong"


@pytest.mark.compose
def test_a_check_that_fails_never_stops_the_others() -> None:
    def broken(_: Context) -> list[Said]:
        raise OSError("the disk is gone")

    rows: tuple[Check[Context], ...] = (
        Check("one", Place.HERE, "", broken),
        Check("two", Place.HERE, "", lambda _: [], ("one",)),
        Check("three", Place.HERE, "", lambda _: []),
        Check("four", Place.HERE, "", broken, ("two", "three")),
    )
    found = examine([context()], rows)
    assert [(each.check, each.level, each.reason) for each in found] == [
        ("one", Level.ERROR, "the disk is gone"),
        ("two", Level.WAITING, "waits for one"),
        ("four", Level.WAITING, "waits for one"),
    ]


def test_each_check_stands_after_those_that_it_needs() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    for number, check in enumerate(CHECKS):
        assert set(check.needs) <= set(names[:number]), check.name
        assert len(check.name) <= 13, "the column of the page"
    assert set(PLACES) == {check.place for check in CHECKS}


def test_the_documentation_has_the_table_as_it_is() -> None:
    assert markdown() in DOCS.read_text(encoding="utf-8")


def test_the_documentation_names_every_key_of_the_json() -> None:
    text = DOCS.read_text(encoding="utf-8").partition("## JSON")[2]
    keys = {*Report.model_fields, *Finding.model_fields, *(str(level) for level in Level), *map(str, Place)}
    assert [key for key in sorted(keys) if f"`{key}`" not in text] == []
