"""When a night ends: a time of day in a time zone, and the moment that it means. Pure."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from dataclasses import dataclass

_UNTIL = re.compile(r"(?:(\d{4}-\d{2}-\d{2})[T ])?(\d{1,2}):(\d{2})(?: +([A-Za-z][\w+/-]*))?")
_RIGHT = "should be 07:00, 2026-12-01T07:00 or '07:00 Europe/Berlin'"
_SAME_NIGHT = datetime.timedelta(hours=2)
"""A night that was cut off by a crash is still the same one so long after its end: then nothing is begun."""


@dataclass(frozen=True)
class Until:
    """What the clock shows at the end: on `day` (None: the next one), in `zone` (None: the person's own)."""

    time: datetime.time
    day: datetime.date | None = None
    zone: zoneinfo.ZoneInfo | None = None


@dataclass(frozen=True)
class NightSpan:
    """One night: from its first start to its end. `ended`: it was brought to its end, nothing is owed any more."""

    until: str
    begun_at: datetime.datetime
    ends_at: datetime.datetime
    ended: bool = False


def read_until(text: str) -> Until:
    """`07:00`, `2026-12-01T07:00`, either with a time zone behind it. Raises ValueError."""
    found = _UNTIL.fullmatch(text.strip())
    if found is None:
        raise ValueError(_RIGHT)
    day, hour, minute, zone = found.groups()
    try:
        time = datetime.time(int(hour), int(minute))
        date = datetime.date.fromisoformat(day) if day else None
    except ValueError as error:
        raise ValueError(f"{_RIGHT}: {error}") from None
    try:
        return Until(time, date, zoneinfo.ZoneInfo(zone) if zone else None)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{zone!r} is no time zone that this machine knows, as Europe/Berlin may be") from None


def next_end(until: Until, after: datetime.datetime, local: datetime.tzinfo) -> datetime.datetime | None:
    """The first moment (UTC) after `after` at which the clock comes to show that time; None for a past day.

    A time that the clock jumps over in spring is reached when it jumps. One that it shows twice in autumn is
    reached the first time; between the two, the second time.
    """
    zone = until.zone or local
    if until.day is not None:
        return next(
            (m for m in reached(datetime.datetime.combine(until.day, until.time), zone) if m > after), None
        )
    today = after.astimezone(zone).date()
    days = (today + datetime.timedelta(days=count) for count in (-1, 0, 1, 2))
    moments = (m for day in days for m in reached(datetime.datetime.combine(day, until.time), zone))
    return min(moment for moment in moments if moment > after)


def reached(shown: datetime.datetime, zone: datetime.tzinfo) -> list[datetime.datetime]:
    """The moments (UTC) at which the clock comes to show `shown` (without a zone): one, or two in autumn."""
    first, second = (shown.replace(tzinfo=zone, fold=fold).astimezone(datetime.UTC) for fold in (0, 1))
    if first == second:
        return [first]
    if first < second:
        return [first, second]
    before, after = second, first  # jumped over: it would have come between these two
    old = before.astimezone(zone).utcoffset()
    while after - before > datetime.timedelta(seconds=1):
        middle = before + (after - before) / 2
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == old else (before, middle)
    return [after.replace(microsecond=0)]


def span_of(text: str, now: datetime.datetime, local: datetime.tzinfo, last: NightSpan | None) -> NightSpan | None:
    """The night that a start at `now` belongs to; None when the day that was asked for is past.

    A start goes on with the `last` night, if that asked for the same and is not over. It is over once it was
    brought to its end, or two hours after that was due.
    """
    if last is not None and last.until == text and not last.ended and now < last.ends_at + _SAME_NIGHT:
        return last
    ends_at = next_end(read_until(text), now, local)
    return None if ends_at is None else NightSpan(text, now, ends_at)


def shown_end(ends_at: datetime.datetime, now: datetime.datetime, zone: datetime.tzinfo) -> str:
    """`07:00`; with the day of the week if it is more than a day away, with the date if more than a week.

    To the nearest minute: counted by another clock than the one on the wall, seven o'clock is a hair before seven.
    """
    here = (ends_at + datetime.timedelta(seconds=30)).astimezone(zone)
    distance = ends_at - now
    if distance < datetime.timedelta(hours=24):
        return here.strftime("%H:%M")
    return here.strftime("%A %H:%M" if distance < datetime.timedelta(days=7) else "%Y-%m-%d %H:%M")
