"""`specsweep run`."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from rich.console import Console

from launchers.base import Launcher
from launchers.clock import SystemClock
from launchers.masking import masked_words
from launchers.slurm import node
from sweeper import config, tracking
from sweeper.commands.fleet import hosts_of, is_for_slurm, run_on_all, worker_of
from sweeper.commands.holding import host_held, study_held
from sweeper.commands.hosts import make_launcher, standing_on
from sweeper.commands.notes import (
    arrival_notes,
    notes_on,
    remembering,
    shown_secrets_notes,
    storage_notes,
    zone_notes,
)
from sweeper.commands.outcome import Outcome, show
from sweeper.commands.plan import plan
from sweeper.commands.report import write_beside
from sweeper.commands.slurm import as_worker, run_through_slurm
from sweeper.endings import ending_of
from sweeper.engines.base import Engine, HostFacts
from sweeper.engines.registry import engine_for
from sweeper.errors import AlreadyAtWork, ExitCode, SpecsweepError, SweepAborted
from sweeper.facts import read_host_facts
from sweeper.interrupts import Interrupts
from sweeper.live import PlainView, RichView, View, Views
from sweeper.loop import is_unfinished, run_sweep
from sweeper.measuring.load import Load, once_each
from sweeper.measuring.rendering import rendered_loads
from sweeper.nights.first_winner import FirstWinner
from sweeper.nights.news import News
from sweeper.nights.notify import Notifier, ends_told
from sweeper.nights.on_finish import Leaving
from sweeper.rig import Rig
from sweeper.spec import SweepSpec
from sweeper.standing.beacon import Beacon
from sweeper.storing.addresses import is_shared
from sweeper.storing.kept_run import KeptRun, how_it_ended, kept_run
from sweeper.storing.losses import STORAGE_ERRORS
from sweeper.storing.ownership import at_work
from sweeper.streams import lenient
from sweeper.study import Study
from sweeper.study_setup import open_study

SET_BACK = (
    "the study's database lacks what was measured last: a server answers now that had not received it. "
    "The same command goes on; so does specsweep resume."
)
"""In the moment between the verdict and the end; before that the sweep itself goes on."""


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run or continue the sweep; prints its result. Raises SpecsweepError, LauncherError, SweepInterrupted."""
    if arguments.dry_run:
        return plan(arguments)
    if is_for_slurm(arguments.overrides):
        where = node()
        return (
            _run_here(as_worker(where, arguments), arguments.overrides) if where else run_through_slurm(arguments)
        )
    if (hosts := hosts_of(arguments.overrides)) is not None:
        return run_on_all(hosts, arguments)
    return _run_here(arguments, arguments.overrides)


def _run_here(arguments: argparse.Namespace, given: Sequence[str]) -> ExitCode:
    """One sweep on one host. `given`: the words that `specsweep resume` is to give again.

    However it ends, from here on somebody is told who wants to be. Raises SpecsweepError, LauncherError,
    SweepInterrupted.
    """
    loaded = config.load(arguments.overrides, arguments.config_dir)
    spec = loaded.spec
    console = Console(file=lenient(sys.stdout))
    interrupts = Interrupts(lambda text: _say(spec, text, console))
    with (
        interrupts.installed(),
        _ends_logged(spec),
        ends_told(spec.notify, spec.study.name, spec.host.name, lambda text: interrupts.say(text)) as notifier,
    ):
        for line in loaded.untold:
            _say(spec, line, console)
        return _sweep(loaded, arguments, given, _Told(console, interrupts, notifier))


@dataclass(frozen=True)
class _Told:
    """Whoever hears of a sweep, from its very start."""

    console: Console
    interrupts: Interrupts
    notifier: Notifier


def _sweep(loaded: config.Loaded, arguments: argparse.Namespace, given: Sequence[str], told_to: _Told) -> ExitCode:
    spec, overrides, config_dir = loaded.spec, arguments.overrides, arguments.config_dir
    console, interrupts, notifier = told_to.console, told_to.interrupts, told_to.notifier
    engine, launcher = engine_for(spec.engine.name), make_launcher(spec.host)
    with host_held(launcher, spec):
        for server_id in launcher.stop_leftovers(spec.limits.stop_grace_s):  # reading the facts may take minutes
            console.print(f"stopped server {server_id}, which an earlier process had left", highlight=False)
        facts = read_host_facts(spec, engine, launcher)
        with study_held(spec), _view(console, spec, plain=arguments.plain) as screen:
            view = Views(screen, FirstWinner(notifier, launcher.host))
            study, told = open_study(spec, engine, facts)
            study.store.database.say = view.notice
            study.store.database.is_hurried = lambda: interrupts.is_abandoning
            with (
                interrupts.saying(view.notice),
                at_work(study.store, worker_of(spec.host), spec.study.lease_s) as (study.ownership, clock),
            ):
                before = study.progress(spec.budget)
                loads, remembered = _loads(spec, engine, launcher, facts)
                rig = Rig(spec, engine, launcher, clock, facts, view, interrupts, loads)
                for note in (*told, *remembered, *notes_on(spec, engine, facts), *_notes(loaded, overrides)):
                    view.notice(note)
                leaving = Leaving(rig, study, standing_on(launcher))
                kept = KeptRun.of(spec, given, config_dir, clock)
                with kept_run(study.store, kept) as ended, put_back(leaving):
                    tracker = tracking.Tracker(spec.tracking, clock)
                    verdict = run_sweep(replace(rig, make_room=leaving.make_room), study, tracker)
                    trials, news = study.compared(), News(study, launcher.host, verdict)
                    left = leaving.leave_unfinished() if interrupts.finish_requested else leaving.leave(verdict)
                    after = study.progress(spec.budget)
                    if study.store.database.is_shared and is_unfinished(rig, study, verdict):
                        raise SweepAborted(SET_BACK)
                    ended(how_it_ended(verdict, after.launches_left))
            outcome = Outcome(verdict, left, after.launches_left, was_complete=not before.launches_left)
            _tell(outcome, news, study.name, rig, notifier)
    _say(spec, f"ended with exit code {outcome.code}: {outcome.text}")
    show(outcome, trials, spec, console)
    page = None if outcome.is_open else _write_report(console, spec, study, tracker)
    where = _where_to_look(spec, page, overrides, config_dir)
    console.print(where, markup=False, highlight=False, soft_wrap=True)
    return outcome.code


def _loads(
    spec: SweepSpec, engine: Engine, launcher: Launcher, facts: HostFacts
) -> tuple[tuple[Load, ...], tuple[str, ...]]:
    """What is sent in a launch, for each workload; and what is said about it."""
    loads = rendered_loads(spec, engine, launcher, facts)
    if not (remembered := remembering(spec, engine)):
        return loads, ()
    note = f"each text is sent once per launch, in all launches alike: {remembered}"
    return tuple(map(once_each, loads)), (note,)


def _notes(loaded: config.Loaded, overrides: Sequence[str]) -> Iterator[str]:
    """What a person should know of the settings before the first launch."""
    yield from loaded.notes
    yield from arrival_notes(loaded.spec)
    yield from storage_notes(loaded.spec)
    yield from zone_notes(loaded.spec)
    yield from shown_secrets_notes(overrides)


def _tell(outcome: Outcome, news: News, study: str, rig: Rig, notifier: Notifier) -> None:
    """Tell who wants to be how it ended, unless the last start of all was told just that."""
    host = rig.launcher.host
    if outcome.is_open:
        notifier.tell("interrupted", study, host, outcome.text)
    elif news.is_new:
        notifier.tell("finished", study, host, outcome.text, news.told)
    else:
        rig.view.notice("nothing has changed since this verdict was told: nobody is told again")


@contextmanager
def put_back(leaving: Leaving) -> Iterator[None]:
    """While open: a sweep that is stopped by what must be mended leaves the host as one that ended early does."""
    try:
        yield
    except SweepAborted as error:
        if left := leaving.leave_unfinished():
            raise SweepAborted(f"{error}\n{left}") from error
        raise
    except (OSError, *STORAGE_ERRORS):
        leaving.leave_unfinished()
        raise


@contextmanager
def _ends_logged(spec: SweepSpec) -> Iterator[None]:
    """While open: why a start or a sweep ends, if not in good order, goes into the sweep's log, and passes on."""
    try:
        yield
    except BaseException as error:
        ending = ending_of(error)
        start = "another start " if isinstance(error, AlreadyAtWork) else ""
        _say(spec, f"{start}ended with exit code {ending.code}: {ending.text}")
        raise


def _say(spec: SweepSpec, text: str, console: Console | None = None) -> None:
    """Where no view is open, before there is one and after: say it, and write it into the log if there is one."""
    if console is not None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    with suppress(OSError), _log_path(spec).open("a", encoding="utf-8") as file:
        _log_view(file, spec).notice(text)


def _log_view(file: TextIO, spec: SweepSpec) -> PlainView:
    console = Console(file=lenient(file), width=200, no_color=True)
    return PlainView(console, SystemClock(), spec.objective_metric)


@contextmanager
def _view(console: Console, spec: SweepSpec, *, plain: bool) -> Iterator[View]:
    """The screen (or plain lines), the same plain lines in the sweep's log file, and what `status` reads."""
    clock = SystemClock()
    beacon = Beacon(Path(spec.study.dir), spec.study.name, spec.host.name, clock, spec.objective_metric)
    with _log_path(spec).open("a", encoding="utf-8") as file, beacon:
        log = _log_view(file, spec)
        if plain or not console.is_terminal or console.is_dumb_terminal:
            yield Views(log, beacon, PlainView(console, clock, spec.objective_metric))
            return
        with RichView(console, clock, spec.objective_metric) as screen:
            yield Views(log, beacon, screen)


def _log_path(spec: SweepSpec) -> Path:
    """The sweep's log; of a shared study each host has one."""
    of_host = "." + re.sub(r"[^\w.-]", "_", spec.host.name)[:60] if is_shared(spec.study.storage) else ""
    return Path(spec.study.dir) / f"{spec.study.name}{of_host}.log"


def _write_report(console: Console, spec: SweepSpec, study: Study, tracker: tracking.Tracker) -> Path | None:
    """Write the report of a sweep that has ended, and show it in MLflow; the page's path.

    None when it could not be written, which is told: the study holds all that it is drawn from.
    """
    try:
        paths = write_beside(spec.study, spec.engine.name)
        files = {f"report{path.suffix}": path.read_bytes() for path in paths}
    except (OSError, SpecsweepError, *STORAGE_ERRORS) as error:
        console.print(f"The report could not be written: {error}", markup=False, highlight=False)
        return None
    if refusal := tracker.attach(study, files, spec.tracking.sync_s):
        console.print(f"MLflow did not take the report: {refusal}", markup=False, highlight=False)
    return paths[0]


def _where_to_look(spec: SweepSpec, page: Path | None, overrides: Sequence[str], config_dir: Path | None) -> str:
    words = [o for o in overrides if o.startswith(("preset=", "study", "tracking"))]
    if config_dir is not None:
        words = ["--config-dir", str(config_dir), *words]
    again = shlex.join(masked_words(words))
    report = f"{page}   (the report)" if page else f"specsweep report {again}".rstrip()
    return "\n".join(
        [
            f"Look next:  {report}",
            f"            specsweep ui {again}".rstrip(),
            f"            {_log_path(spec)}",
        ]
    )
