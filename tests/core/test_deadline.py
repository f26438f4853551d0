"""Which moment `budget.until` means: days, time zones, daylight saving, and nights that go on."""

from __future__ import annotations

import datetime
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.deadline import next_end, reached, read_until, shown_end, span_of

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")


def utc(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


def clock_shows(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def end(text: str, after: str, local: datetime.tzinfo = BERLIN) -> datetime.datetime | None:
    return next_end(read_until(text), utc(after), local)


# (until, started at in UTC, ends at in UTC); Berlin is one hour ahead in winter, two in summer
MOMENTS = [
    ("07:00", "2026-12-01T22:00", "2026-12-02T06:00"),
    ("07:00", "2026-12-01T02:00", "2026-12-01T06:00"),
    ("07:00", "2026-12-01T06:00", "2026-12-02T06:00"),  # at the very moment: the next one
    ("7:00", "2026-12-31T22:00", "2027-01-01T06:00"),
    ("00:00", "2026-12-01T22:59", "2026-12-01T23:00"),
    ("07:00 America/New_York", "2026-12-01T22:00", "2026-12-02T12:00"),
    ("2026-12-04T07:00", "2026-12-01T22:00", "2026-12-04T06:00"),
    ("2026-12-04 07:00 UTC", "2026-12-01T22:00", "2026-12-04T07:00"),
    ("07:00", "2026-03-28T22:00", "2026-03-29T05:00"),  # the night in which summer time begins is an hour shorter
    ("07:00", "2026-10-24T22:00", "2026-10-25T06:00"),
    ("02:30", "2026-03-28T22:00", "2026-03-29T01:00"),  # jumped over: when the clock jumps
    ("02:30", "2026-10-24T22:00", "2026-10-25T00:30"),  # shown twice: the first time ...
    ("02:30", "2026-10-25T00:45", "2026-10-25T01:30"),  # ... and between the two the second
    ("02:30", "2026-10-25T01:45", "2026-10-26T01:30"),
]


@pytest.mark.parametrize(("text", "after", "expected"), MOMENTS)
def test_the_next_moment_at_which_the_clock_comes_to_show_it(text: str, after: str, expected: str) -> None:
    assert end(text, after) == utc(expected)


def test_a_day_that_is_past_has_no_end() -> None:
    assert end("2026-12-01T07:00", "2026-12-01T06:00") is None


@given(
    st.datetimes(clock_shows("2024-01-01"), clock_shows("2030-01-01")),
    st.times(),
    st.sampled_from([BERLIN, NEW_YORK, ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Asia/Kathmandu"), datetime.UTC]),
)
def test_an_end_is_ahead_within_a_day_and_shows_that_time_wherever_it_exists(
    after: datetime.datetime, time: datetime.time, zone: datetime.tzinfo
) -> None:
    started = after.replace(tzinfo=datetime.UTC)
    found = next_end(read_until(f"{time:%H:%M}"), started, zone)
    assert found is not None
    assert started < found <= started + datetime.timedelta(hours=25)
    here = found.astimezone(zone)
    assert (
        f"{here:%H:%M}" == f"{time:%H:%M}"
        or here.utcoffset() != (found - datetime.timedelta(seconds=1)).astimezone(zone).utcoffset()
    )


def test_a_time_that_exists_twice_is_reached_twice() -> None:
    assert len(reached(clock_shows("2026-10-25T02:30"), BERLIN)) == 2
    assert len(reached(clock_shows("2026-10-25T03:30"), BERLIN)) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("7", "should be 07:00"),
        ("24:00", "hour must be in 0..23"),
        ("2026-02-30T07:00", "day is out of range"),
        ("07:00 Mars/Base", "'Mars/Base' is no time zone"),
        ("07:00 ../../etc/passwd", "should be 07:00"),
        ("07:00 A/../../x", "should be 07:00"),
        ("", "should be 07:00"),
    ],
)
def test_what_is_no_time_is_refused_with_what_would_be_right(text: str, says: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_until(text)
    assert says in str(refused.value)


def test_a_start_in_the_night_keeps_the_morning_and_one_after_it_means_tomorrow() -> None:
    begun = span_of("07:00", utc("2026-12-01T22:00"), BERLIN, None)
    assert begun is not None
    assert span_of("07:00", utc("2026-12-02T02:00"), BERLIN, begun) == begun
    tomorrow = span_of("07:00", utc("2026-12-02T09:00"), BERLIN, begun)
    assert tomorrow is not None
    assert tomorrow.ends_at == utc("2026-12-03T06:00")
    assert tomorrow.begun_at == utc("2026-12-02T09:00")


def test_a_supervisor_that_starts_a_crashed_sweep_after_its_end_does_not_begin_another_night() -> None:
    begun = span_of("07:00", utc("2026-12-01T22:00"), BERLIN, None)
    assert begun is not None
    assert span_of("07:00", utc("2026-12-02T06:05"), BERLIN, begun) == begun, "the end was never carried out"
    over = replace(begun, ended=True)
    assert span_of("07:00", utc("2026-12-02T06:05"), BERLIN, over) != over, "a person asks for the next one"


def test_another_end_is_another_night() -> None:
    begun = span_of("07:00", utc("2026-12-01T22:00"), BERLIN, None)
    later = span_of("08:00", utc("2026-12-02T02:00"), BERLIN, begun)
    assert later is not None
    assert later.ends_at == utc("2026-12-02T07:00")


def test_an_end_is_told_as_a_person_would() -> None:
    now = utc("2026-12-01T22:00")
    assert shown_end(utc("2026-12-02T06:00"), now, BERLIN) == "07:00"
    assert shown_end(utc("2026-12-04T06:00"), now, BERLIN) == "Friday 07:00"
    assert shown_end(utc("2026-12-24T06:00"), now, BERLIN) == "2026-12-24 07:00"
    hair = datetime.timedelta(microseconds=40)
    assert shown_end(utc("2026-12-02T06:00") - hair, now, BERLIN) == "07:00"
