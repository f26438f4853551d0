"""The report of a study that several hosts have measured: what each of them did stands beside the common scale."""

from __future__ import annotations

import pytest

from analysis.reading import Reading, reading_of
from analysis.sections.hosts import hosts as told_of
from tests.analysis.builders import OBJECTIVE, simplicity
from tests.analysis.large import fleet_night, large_night, stored
from tests.analysis.studies import text_of

ALL = [f"gpu{n}" for n in range(1, 10)]


def read(*hosts: str) -> Reading:
    return reading_of(stored(fleet_night(12, hosts) if hosts else large_night(12)), simplicity)


def cells(table: str, trial: int) -> dict[str, str]:
    """The row of a trial by its headings."""
    rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line
    ]
    row = next(row for row in rows if row[:1] == [str(trial)])
    return dict(zip(rows[0], row, strict=True))


def test_each_host_has_a_column_with_what_was_measured_there() -> None:
    reading = read("gpu1", "gpu2")
    table = text_of(told_of(reading))
    own = next(trial for trial in reading.recorded if trial.number == 1)
    (launch,) = [n for n in own.launches if n.host == "gpu2"][:1]
    row = cells(table, 1)
    assert row["gpu2 (tok/s)"] == f"{launch.metrics[OBJECTIVE]:.1f}"
    base = cells(table, 0)
    assert float(base["gpu2 (tok/s)"]) == pytest.approx(0.9 * float(base["gpu1 (tok/s)"]), rel=0.05)
    assert "All values are on the scale of host gpu1" in table
    assert reading.verdict.scale


def test_what_a_host_has_not_measured_is_a_dash() -> None:
    table = text_of(told_of(read("gpu1", "gpu2", "gpu3")))
    assert cells(table, 1)["gpu3 (tok/s)"] == "–"


def test_a_single_host_has_no_column_of_its_own() -> None:
    assert told_of(read()) is None


def test_of_very_many_hosts_one_column_names_those_of_a_trial() -> None:
    table = text_of(told_of(read(*ALL)))
    assert "gpu1 (tok/s)" not in table
    assert cells(table, 1)["hosts"] == "gpu1, gpu2", "searched on one, confirmed on the other"
    assert cells(table, 0)["hosts"] == ", ".join(ALL)


def test_the_name_of_a_host_is_no_markup() -> None:
    table = text_of(told_of(read("gpu1", "<b>|x")))
    assert "<b>" not in table
    assert len(cells(table, 0)) == len(cells(table, 1))
