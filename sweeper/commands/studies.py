"""`specsweep studies`."""

from __future__ import annotations

import argparse
import datetime
import json

from rich.console import Group
from rich.table import Table
from rich.text import Text

from launchers.clock import SystemClock
from sweeper import config
from sweeper.commands.as_json import print_json
from sweeper.commands.screen import screen
from sweeper.errors import ExitCode
from sweeper.garbage import no_search_for_garbage
from sweeper.metrics import METRICS
from sweeper.standing.catalogue import Catalogue, Entry, catalogue
from sweeper.tally import spent
from sweeper.text import plain

_NARROW = 110
"""Below so many columns each study has lines of its own instead of a row."""

_COLUMNS = ("study", "state", "trials", "best", "age", "engine", "model")
_MAX_VERDICT = 60
_DAYS_FROM = 3


@no_search_for_garbage()
def studies(arguments: argparse.Namespace) -> ExitCode:
    """List the studies of a storage, newest first. Raises ConfigError."""
    place = config.load_place(arguments.overrides, arguments.config_dir)
    now = SystemClock().now()
    found = catalogue(place.study, now)
    if arguments.json:
        print_json(json.loads(found.model_dump_json()))
    else:
        _show(found, now)
    return ExitCode.OK


def _show(found: Catalogue, now: datetime.datetime) -> None:
    console = screen()
    if console.width < _NARROW:
        for entry in found.studies:
            console.print(_block(entry, now))
    elif found.studies:
        console.print(_table(found.studies, now))
    harmed = [
        f"{entry.study}: left out: {entry.damaged[0]}{_more(entry)}" for entry in found.studies if entry.damaged
    ]
    for line in (*found.notes, *harmed):
        console.print(f"note: {plain(line)}", markup=False)


def _more(entry: Entry) -> str:
    left = len(entry.damaged) - 1
    return f"; and {left} more" if left else ""


def _table(entries: tuple[Entry, ...], now: datetime.datetime) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column, overflow="fold", no_wrap=column == "age")
    for entry in entries:
        table.add_row(*(Text(cell) for cell in _cells(entry, now)))
    return table


def _block(entry: Entry, now: datetime.datetime) -> Group:
    """A study on a narrow screen: its name and state, then what there is to say of it."""
    name, state, *rest = _cells(entry, now)
    table = Table.grid(padding=(0, 2, 0, 0))
    for label, cell in zip(_COLUMNS[2:], rest, strict=True):
        if cell:
            table.add_row(f"  {label}", Text(cell, overflow="fold"))
    return Group(Text(f"{name}: ", style="bold").append(state, style="not bold"), table)


def _cells(entry: Entry, now: datetime.datetime) -> tuple[str, ...]:
    age = _age((now - entry.last_at).total_seconds()) if entry.last_at else ""
    total = f" of {entry.trials_total}" if entry.trials_total else ""
    trials = f"{entry.trials_done}{total}" if entry.state != "foreign" else ""
    return (entry.study, _state_text(entry), trials, _best_text(entry), age, entry.engine, entry.model)


def _age(seconds: float) -> str:
    days = round(seconds / 86_400)
    return f"{days} days ago" if days >= _DAYS_FROM else f"{spent(max(0.0, seconds))} ago"


def _state_text(entry: Entry) -> str:
    """The state, and by whom it runs, what its verdict is, or what is wrong."""
    if entry.state == "running":
        return f"running: {', '.join(entry.by)}"
    if entry.state in ("complete", "imported") and entry.verdict_kind:
        return f"{entry.state}: {plain(entry.verdict_kind, _MAX_VERDICT)}"
    return f"{entry.state}: {plain(entry.why, 100)}" if entry.why else entry.state


def _best_text(entry: Entry) -> str:
    """The best value and its gain; a gain that chance may show is marked."""
    metric = METRICS.get(entry.objective)
    if entry.best is None or metric is None:
        return ""
    value = f"{'≈ ' if entry.best.estimated else ''}{metric.format(entry.best.value)} {metric.unit}".rstrip()
    if entry.best.ratio is None:
        return value
    gain = f"{entry.best.ratio:.2f} x"
    return f"{value}, {gain}" + ("" if entry.best.beyond_luck is not False else " (within chance)")
