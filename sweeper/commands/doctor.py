"""`specsweep doctor`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from launchers.clock import SystemClock
from launchers.group import GroupLauncher
from sweeper import config
from sweeper.commands.fleet import hosts_of
from sweeper.commands.hosts import make_launcher
from sweeper.commands.notes import arrival_notes, notes_on, shown_secrets_notes, storage_notes
from sweeper.commands.screen import screen
from sweeper.doctor import page
from sweeper.doctor.context import Context
from sweeper.doctor.examination import Report, examine, refused, report_of
from sweeper.doctor.finding import Finding, Level
from sweeper.engines.registry import engine_for
from sweeper.errors import ConfigError, ExitCode
from sweeper.spec import SweepSpec
from sweeper.streams import lenient

Cut = Literal["fold", "crop", "ellipsis"]
_STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "bold red", Level.WAITING: "dim"}


def doctor(arguments: argparse.Namespace) -> ExitCode:
    """Look at everything that a run with these settings needs; prints it. Starts nothing and changes nothing."""
    clock, console = SystemClock(), screen()
    began_s = clock.monotonic_s()
    with Console(file=lenient(sys.stderr)).status("looking at everything from here to the first token ..."):
        study, findings = _found(arguments)
    report = report_of(findings, study, clock.now(), clock.monotonic_s() - began_s)
    if arguments.json:
        sys.stdout.write(report.model_dump_json(indent=2) + "\n")
    else:
        show(report, console)
    return ExitCode(report.exit_code)


def _found(arguments: argparse.Namespace) -> tuple[str, tuple[Finding, ...]]:
    """The study's name, as far as it is known, and what was found on every host that is asked for."""
    study, found = "", tuple[Finding, ...]()
    try:
        hosts = hosts_of(arguments.overrides)
        words = [word for word in arguments.overrides if not word.startswith("hosts=")]
        for overrides in [words] if hosts is None else [[*words, f"host={name}"] for name in hosts]:
            spec = config.load(overrides, arguments.config_dir).spec
            study = spec.study.name
            with closing_all(_contexts(spec, overrides)) as contexts:
                found += examine(contexts)
    except ConfigError as mistake:
        return study, refused(mistake)
    return study, found


@contextmanager
def closing_all(contexts: list[Context]) -> Iterator[list[Context]]:
    """Their connections are closed in the end."""
    try:
        yield contexts
    finally:
        for each in contexts:
            each.close()


def _contexts(spec: SweepSpec, overrides: list[str]) -> list[Context]:
    """One for each host of the server. Raises ConfigError."""
    launcher = make_launcher(spec.host)
    launchers = launcher.launchers if isinstance(launcher, GroupLauncher) else (launcher,)
    notes = (*arrival_notes(spec), *storage_notes(spec), *shown_secrets_notes(overrides))
    engine = engine_for(spec.engine.name)
    return [Context(spec, engine, each, notes, notes_on) for each in launchers]


def show(report: Report, console: Console) -> None:
    """Print it: a page on a terminal, one line for each thing elsewhere."""
    where = f" on {', '.join(report.hosts)}" if report.hosts else ""
    _line(console, f"{report.study or 'specsweep'}{where}", "bold")
    for group in page.groups(report):
        _line(console, f"\n{group.title}", "bold")
        _rows(console, group.rows)
    _line(console, f"\n{page.counted(report)}, in {report.took_s:.0f} s", "bold")
    _rows(console, tuple(page.summary(report)), overflow="crop" if console.options.ascii_only else "ellipsis")
    first, *steps = page.ending(report)
    _line(console, f"\n{first}", "bold green" if report.ready else "bold red")
    for step in steps:
        _line(console, step, "")


def _rows(console: Console, rows: tuple[page.Row, ...], overflow: Cut = "fold") -> None:
    """On a terminal what is too long is folded or, where it stands in full above, cut."""
    if not console.is_terminal:
        for row in rows:
            fix = f" | fix: {row.fix}" if row.fix else ""
            line = f"{page.SHORT[row.level]:{page.LEVEL_WIDTH}} {row.check:{page.NAME_WIDTH}} {row.reason}{fix}"
            console.print(line, markup=False, soft_wrap=True)
        return
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, width=page.LEVEL_WIDTH)
    table.add_column(no_wrap=True, width=page.NAME_WIDTH)
    table.add_column(overflow=overflow)
    for row in rows:
        style = "dim" if row.level is Level.WAITING else ""
        text = Text(row.reason, style, no_wrap=overflow != "fold", overflow=overflow)
        if row.fix:
            text.append(f"\nfix: {row.fix}", style="cyan")
        table.add_row(Text(page.SHORT[row.level], style=_STYLES[row.level]), row.check, text)
    console.print(table)


def _line(console: Console, text: str, style: str) -> None:
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)
