"""What a person reads of a report, as plain lines: groups by place, then what is worst, then what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sweeper.doctor.examination import Report, worst_first
from sweeper.doctor.finding import Finding, Level
from sweeper.doctor.table import PLACES

SHORT: dict[Level, str] = {Level.OK: "ok", Level.WARNING: "warning", Level.ERROR: "error", Level.WAITING: "waits"}
NAME_WIDTH = 13
LEVEL_WIDTH = 7
_MAX_SUMMARY = 12


@dataclass(frozen=True)
class Row:
    """One line of a group. `check` is empty where it is that of the line above, `fix` where it is that below."""

    level: Level
    check: str
    reason: str
    fix: str = ""


@dataclass(frozen=True)
class Group:
    """A place and its rows."""

    title: str
    rows: tuple[Row, ...]


def groups(report: Report) -> Iterator[Group]:
    """By place, and by host where there are several; checks that wait for the same stand on one line."""
    keys = dict.fromkeys((each.place, each.host) for each in report.findings)
    for place, host in keys:
        mine = [each for each in report.findings if (each.place, each.host) == (place, host)]
        title = f"{PLACES[place]}, {host}" if host else PLACES[place]
        yield Group(title, tuple(_rows(mine)))


def counted(report: Report) -> str:
    """`2 errors, 1 warning, 30 ok, 4 not looked at`."""
    words = {Level.ERROR: "error", Level.WARNING: "warning"}
    told = [
        f"{report.counts[level]} {word}{'' if report.counts[level] == 1 else 's'}" for level, word in words.items()
    ]
    told.append(f"{report.counts[Level.OK]} ok")
    if waiting := report.counts[Level.WAITING]:
        told.append(f"{waiting} not looked at")
    return ", ".join(told)


def summary(report: Report) -> list[Row]:
    """The worst first, without what to do; the rest of many in one line."""
    found = worst_first(report.findings)
    rows = [Row(each.level, each.check, each.reason) for each in found[:_MAX_SUMMARY]]
    if more := len(found) - _MAX_SUMMARY:
        rows += [Row(found[-1].level, "", f"and {more} more above")] if more > 0 else []
    return rows


def ending(report: Report) -> list[str]:
    """`ready`, or what to do, in the order in which to do it."""
    if report.ready:
        warned = report.counts[Level.WARNING]
        return [f"ready, with {warned} warning{'s' if warned > 1 else ''}" if warned else "ready"]
    steps = [f"{number}. {fix}" for number, fix in enumerate(report.fixes, 1)]
    return ["Not ready. In this order:", *steps, "Then once more: specsweep doctor"]


def _rows(findings: list[Finding]) -> Iterator[Row]:
    before = ""
    waiting: dict[str, list[str]] = {}
    looked = [each for each in findings if each.level is not Level.WAITING]
    for number, each in enumerate(looked, 1):
        is_said_below = any(
            (after.check, after.fix) == (each.check, each.fix) for after in looked[number : number + 1]
        )
        yield Row(
            each.level,
            each.check if each.check != before else "",
            each.reason,
            "" if is_said_below else each.fix,
        )
        before = each.check
    for each in findings:
        if each.level is Level.WAITING:
            waiting.setdefault(each.reason, []).append(each.check)
    for reason, checks in waiting.items():
        yield Row(Level.WAITING, "", f"{', '.join(checks)}: {reason.removeprefix('waits ')}")
