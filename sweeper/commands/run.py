"""`specsweep run`."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from rich.console import Console

from launchers.clock import SystemClock
from launchers.shell import LocalShell
from sweeper import config, tracking
from sweeper.commands.hosts import make_launcher
from sweeper.commands.notes import arrival_notes, notes_on, remembering, shown_secrets_notes
from sweeper.engines.registry import engine_for
from sweeper.errors import ExitCode
from sweeper.facts import read_host_facts
from sweeper.interrupts import Interrupts
from sweeper.live import PlainView, RichView, View, Views
from sweeper.loop import run_sweep
from sweeper.measuring.load import once_each
from sweeper.measuring.rendering import rendered_loads
from sweeper.result_table import result_table
from sweeper.rig import Rig
from sweeper.spec import SweepSpec
from sweeper.streams import lenient
from sweeper.study_setup import open_study


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run or continue the sweep; prints its result. Raises SpecsweepError, LauncherError, SweepInterrupted."""
    overrides, config_dir = arguments.overrides, arguments.config_dir
    spec = config.load(overrides, config_dir).spec
    console, clock = Console(file=lenient(sys.stdout)), SystemClock()
    engine, launcher = engine_for(spec.engine.name), make_launcher(spec.host)
    interrupts = Interrupts(lambda text: console.print(text, markup=False, highlight=False))
    with interrupts.installed(), launcher.hold():
        for server_id in launcher.stop_leftovers(spec.limits.stop_grace_s):  # reading the facts may take minutes
            console.print(f"stopped server {server_id}, which an earlier process had left", highlight=False)
        facts = read_host_facts(spec, engine, launcher)
        with _hold_study(spec), _view(console, spec, plain=arguments.plain) as view:
            study, told = open_study(spec, engine, facts)
            before = study.progress(spec.budget)
            interrupts.say = view.notice
            loads = rendered_loads(spec, engine, launcher, facts)
            if remembered := remembering(spec, engine):
                loads = tuple(map(once_each, loads))
                view.notice(f"each text is sent once per launch, in all launches alike: {remembered}")
            rig = Rig(spec, engine, launcher, clock, facts, view, interrupts, loads)
            for note in (
                *told,
                *notes_on(spec, engine, facts),
                *arrival_notes(spec),
                *shown_secrets_notes(overrides),
            ):
                view.notice(note)
            verdict = run_sweep(rig, study, tracking.Tracker(spec.tracking, clock))
    after = study.progress(spec.budget)
    if trials := study.trials():
        asked = spec.objective.text(spec.workload.name)
        console.print(result_table(trials, spec.objective_metric, console.width, asked))
    so_far = f"So far, with up to {after.launches_left} launches to go: " if after.launches_left else ""
    console.print(f"\n{so_far}{verdict.text}\n", markup=False, highlight=False)
    if after.launches_left:
        console.print("Stopped early, as asked. The same command goes on.", highlight=False)
    elif not before.launches_left:
        console.print("The sweep was complete already: a larger budget.trials goes on from here.", highlight=False)
    console.print(_where_to_look(spec, overrides, config_dir), markup=False, highlight=False, soft_wrap=True)
    return ExitCode.INTERRUPTED if after.launches_left else ExitCode.OK


def _hold_study(spec: SweepSpec) -> AbstractContextManager[None]:
    """Make the sweep's folder, and own a study that lies in a file: two processes would measure its trials twice.

    Raises HostBusy.
    """
    Path(spec.study.dir).mkdir(parents=True, exist_ok=True)
    if not spec.study.storage.startswith("sqlite"):
        return nullcontext()
    return LocalShell(f"study {spec.study.name}").hold(f"{spec.study.dir}/{spec.study.name}.lock")


@contextmanager
def _view(console: Console, spec: SweepSpec, *, plain: bool) -> Iterator[View]:
    """The screen (or plain lines), and the same plain lines in the sweep's log file."""
    clock = SystemClock()
    log_path = Path(spec.study.dir) / f"{spec.study.name}.log"
    with log_path.open("a", encoding="utf-8") as file:
        log = PlainView(Console(file=lenient(file), width=200, no_color=True), clock, spec.objective_metric)
        if plain or not console.is_terminal:
            yield Views(log, PlainView(console, clock, spec.objective_metric))
            return
        with RichView(console, clock, spec.objective_metric) as screen:
            yield Views(log, screen)


def _where_to_look(spec: SweepSpec, overrides: Sequence[str], config_dir: Path | None) -> str:
    words = [o for o in overrides if o.startswith(("preset=", "study", "tracking"))]
    if config_dir is not None:
        words = ["--config-dir", str(config_dir), *words]
    again = shlex.join(words)
    return "\n".join(
        [
            f"Look next:  specsweep report {again}".rstrip(),
            f"            specsweep ui {again}".rstrip(),
            f"            {Path(spec.study.dir) / (spec.study.name + '.log')}",
        ]
    )
