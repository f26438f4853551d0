"""`specsweep status`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NoReturn

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from launchers.clock import Clock, SystemClock
from sweeper import config
from sweeper.errors import ExitCode, Together
from sweeper.garbage import no_search_for_garbage
from sweeper.standing.glance import glance
from sweeper.standing.model import Standing
from sweeper.standing.words import lines
from sweeper.storing.storage import StudyStore
from sweeper.streams import lenient

LEAST_WATCH_S = 0.5


def status(arguments: argparse.Namespace) -> ExitCode:
    """Say where a study stands, once or again and again. Raises ConfigError."""
    together = Together()
    if arguments.watch is not None and not LEAST_WATCH_S <= arguments.watch <= 86_400:
        together.mistakes.append(
            f"--watch: {arguments.watch:g} is no time between looks; use {LEAST_WATCH_S:g} to 86400 s"
        )
    with together, no_search_for_garbage():
        place = config.load_place(arguments.overrides, arguments.config_dir)
        store = StudyStore.open(place.study.storage, place.study.name, place.study.dir, create=False)
    together.tell()
    folder, clock = Path(place.study.dir), SystemClock()
    console = Console(file=lenient(sys.stdout), highlight=False)
    if arguments.watch is not None:
        _watch(store, folder, console, clock, arguments)
    standing = glance(store, folder, clock.now())
    if arguments.json:
        sys.stdout.write(standing.model_dump_json(indent=2) + "\n")
    else:
        show(standing, console)
    return ExitCode.OK


def _watch(
    store: StudyStore, folder: Path, console: Console, clock: Clock, arguments: argparse.Namespace
) -> NoReturn:
    """Until Ctrl-C, which ends it as any command. Off a terminal, and as JSON, one look follows the other; JSON on
    one line each."""
    if arguments.json or not console.is_terminal or console.is_dumb_terminal:
        while True:
            standing = glance(store, folder, clock.now())
            if arguments.json:
                sys.stdout.write(standing.model_dump_json() + "\n")
                sys.stdout.flush()
            else:
                show(standing, console)
            clock.sleep(arguments.watch)
    with Live(console=console, auto_refresh=False, screen=False) as live:
        while True:
            live.update(page(glance(store, folder, clock.now()), console), refresh=True)
            clock.sleep(arguments.watch)


def show(standing: Standing, console: Console) -> None:
    """Print it: a page on a terminal, one line for each thing elsewhere."""
    if console.is_terminal:
        console.print(page(standing, console))
        return
    for label, text in lines(standing, 100, ascii_only=_is_ascii(console)):
        console.print(f"{label or '':8}{text}", markup=False, soft_wrap=True)


def page(standing: Standing, console: Console) -> Group:
    """As wide as the console, its labels dim."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in lines(standing, console.width, ascii_only=_is_ascii(console)):
        table.add_row(label, Text(text, style="bold" if label == "best" else ""))
    return Group(table)


def _is_ascii(console: Console) -> bool:
    return not console.encoding.startswith("utf")
