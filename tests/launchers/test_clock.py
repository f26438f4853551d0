"""The time zone of this machine, as $TZ gives it."""

from __future__ import annotations

import datetime
import zoneinfo
from pathlib import Path

import pytest

from launchers.clock import SystemClock, known_zone

pytestmark = pytest.mark.host

FILE = next((str(file) for path in zoneinfo.TZPATH if (file := Path(path, "Europe/Berlin")).exists()), "")


@pytest.mark.skipif(not FILE, reason="needs the time zones' files")
@pytest.mark.parametrize("value", ["Europe/Berlin", ":Europe/Berlin", FILE, f":{FILE}"])
def test_a_zone_is_known_with_its_rules_by_its_name_and_by_its_file(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", value)
    zone = SystemClock().zone()
    offsets = [datetime.datetime(2026, month, 1, tzinfo=zone).utcoffset() for month in (1, 7)]
    assert offsets == [datetime.timedelta(hours=1), datetime.timedelta(hours=2)]


@pytest.mark.parametrize("value", ["", ":"])
def test_an_empty_zone_is_utc_whatever_the_machine_s_own_is(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", value)
    assert known_zone() is datetime.UTC


@pytest.mark.parametrize("value", ["Mars/Olympus", "CET-1CEST,M3.5.0,M10.5.0/3", "/no/such/file", "../etc/passwd"])
def test_what_names_no_zone_of_this_machine_is_known_as_that(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", value)
    assert known_zone() is None
    assert SystemClock().zone().utcoffset(None) is not None
