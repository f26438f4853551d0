"""`specsweep plan`, which is `specsweep run --dry-run`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from launchers.clock import Clock, SystemClock
from sweeper import config
from sweeper.commands.fleet import hosts_of, specs_of_hosts
from sweeper.commands.hosts import make_launcher
from sweeper.commands.notes import arrival_notes, notes_on, shown_secrets_notes, storage_notes, zone_notes
from sweeper.commands.screen import screen
from sweeper.errors import ExitCode, Together
from sweeper.planning.making import Notes, plan_of
from sweeper.planning.model import Plan
from sweeper.planning.words import OK, QUIET, WARNING, Line, Part, parts

MAX_TRIALS_SHOWN = 50
_STYLES = {OK: "green", WARNING: "yellow", QUIET: "dim", "": ""}
_NARROW = 60


def plan(arguments: argparse.Namespace) -> ExitCode:
    """Say what a start would do; nothing is started and nothing is written. Raises SpecsweepError."""
    together, clock = Together(), SystemClock()
    if not 0 <= arguments.trials <= MAX_TRIALS_SHOWN:
        together.mistakes.append(f"--trials: {arguments.trials} should be 0 to {MAX_TRIALS_SHOWN}")
    notes = list(shown_secrets_notes(arguments.overrides))
    with together:
        hosts = hosts_of(arguments.overrides)
        loaded = _loaded(hosts, arguments)
    together.tell()
    if hosts is not None:
        notes.append(f"{len(hosts)} hosts share the study: the time is told as if each had all launches alone")
    plans = [plan_of(each.spec, arguments.trials, clock, _notes(each, notes)) for each in loaded]
    if arguments.json:
        data = [json.loads(each.model_dump_json()) for each in plans]
        sys.stdout.write(json.dumps(data[0] if hosts is None else data, indent=2) + "\n")
        return ExitCode.OK
    console = screen()
    for each in plans:
        show(each, console, clock)
    return ExitCode.OK


def _loaded(hosts: Sequence[str] | None, arguments: argparse.Namespace) -> list[config.Loaded]:
    """The configuration of the run, or of each host's. Raises ConfigError."""
    if hosts is None:
        found = [config.load(arguments.overrides, arguments.config_dir)]
    else:
        found = specs_of_hosts(hosts, arguments)
    for each in found:
        make_launcher(each.spec.host)  # connects to nobody
    return found


def _notes(loaded: config.Loaded, known: Sequence[str]) -> Notes:
    """What a run says before its first launch, as far as it is known without the host."""
    return lambda engine, facts: (
        *notes_on(loaded.spec, engine, facts),
        *loaded.notes,
        *arrival_notes(loaded.spec),
        *storage_notes(loaded.spec),
        *zone_notes(loaded.spec),
        *known,
    )


def show(found: Plan, console: Console, clock: Clock) -> None:
    """Print it in parts; command lines without colour or indentation, so that they can be copied."""
    console.print("Nothing is started, nothing is written.", style="dim")
    for part in parts(found, clock.zone(), console.width):
        if part.title:
            console.print(f"\n{part.title}", style="bold", markup=False)
        _print_part(part, console)


def _print_part(part: Part, console: Console) -> None:
    label_width = max((len(line.label) for line in part.lines), default=0)
    for line in part.lines:
        if line.is_command:
            console.print(line.text, markup=False, soft_wrap=True)
        else:
            console.print(_row(line, label_width))


def _row(line: Line, label_width: int) -> Table | Padding:
    """A label and its text beside one another; text alone is set in a little."""
    text = Text(line.text, style=_STYLES[line.tone])
    if not label_width:
        return Padding(text, (0, 0, 0, 2))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True, min_width=label_width, justify="left")
    grid.add_column(overflow="fold")
    grid.add_row(line.label, text)
    return grid
