"""What each command of the command line does. Stands above everything; nothing imports it but `__main__`."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from rich.console import Console

from launchers.base import Launcher
from launchers.clock import SystemClock
from launchers.group import GroupLauncher
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from launchers.ssh import SshShell, SshTarget
from sweeper import config, tracking
from sweeper.engines.base import Engine, HostFacts
from sweeper.engines.registry import engine_for
from sweeper.errors import ConfigError, ExitCode
from sweeper.facts import read_host_facts
from sweeper.host_spec import HostSpec
from sweeper.interrupts import Interrupts
from sweeper.live import PlainView, RichView, View, Views
from sweeper.loop import run_sweep
from sweeper.measuring.load import once_each
from sweeper.measuring.rendering import rendered_loads
from sweeper.result_table import result_table
from sweeper.rig import Rig
from sweeper.space import samples, to_config
from sweeper.spec import ServerConfig, StudyPlace, SweepSpec
from sweeper.storage import StudyStore
from sweeper.streams import lenient
from sweeper.study_setup import open_study
from sweeper.what_if import ask
from sweeper.what_if import words as answer_lines

_MAX_SAMPLES = 300


def run(overrides: Sequence[str], config_dir: Path | None, *, plain: bool) -> ExitCode:
    """Run or continue the sweep; prints its result. Raises SpecsweepError, LauncherError, SweepInterrupted."""
    spec = config.load(overrides, config_dir).spec
    console, clock = Console(file=lenient(sys.stdout)), SystemClock()
    engine, launcher = engine_for(spec.engine.name), make_launcher(spec.host)
    interrupts = Interrupts(lambda text: console.print(text, markup=False, highlight=False))
    with interrupts.installed(), launcher.hold():
        for server_id in launcher.stop_leftovers(spec.limits.stop_grace_s):  # reading the facts may take minutes
            console.print(f"stopped server {server_id}, which an earlier process had left", highlight=False)
        facts = read_host_facts(spec, engine, launcher)
        with _hold_study(spec), _view(console, spec, plain=plain) as view:
            study, told = open_study(spec, engine, facts)
            before = study.progress(spec.budget)
            interrupts.say = view.notice
            loads = rendered_loads(spec, engine, launcher, facts)
            if remembered := remembering(spec, engine):
                loads = tuple(map(once_each, loads))
                view.notice(f"each text is sent once per launch, in all launches alike: {remembered}")
            rig = Rig(spec, engine, launcher, clock, facts, view, interrupts, loads)
            for note in (*told, *notes_on(spec, engine, facts), *arrival_notes(spec)):
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


def report(overrides: Sequence[str], config_dir: Path | None, output: str | None) -> ExitCode:
    """Write the report of a study, or print it when `output` is "-"."""
    from analysis.report import markdown, write  # loads pandas, which no other command needs

    place = config.load_place(overrides, config_dir)
    store = StudyStore.open(place.study.storage, place.study.name, place.study.dir, create=False)
    stored = store.fact("fingerprint") or {}
    simplicity = engine_for(stored.get("engine.name", place.engine_name)).simplicity
    if output == "-":
        sys.stdout.write(markdown(store, simplicity))
        return ExitCode.OK
    target = Path(output) if output else Path(place.study.dir) / f"{place.study.name}-report.md"
    sys.stdout.write(f"{write(store, simplicity, target)}\n")
    return ExitCode.OK


def predict(words: Sequence[str], config_dir: Path | None) -> ExitCode:
    """Print what a configuration of a study would do. Raises ConfigError."""
    settings, asked = split_question(words)
    place = config.load_place(settings, config_dir)
    store = StudyStore.open(place.study.storage, place.study.name, place.study.dir, create=False)
    kept, answer = ask(store, asked)
    baseline = engine_for(kept.engine).baseline(kept.base, kept.facts)
    sys.stdout.write("\n".join(answer_lines(kept, answer, baseline)) + "\n")
    return ExitCode.OK


def split_question(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Which words are settings (of a group, or dotted), and the values that are asked about by name.

    Raises ConfigError for a word that is neither.
    """
    settings: list[str] = []
    asked: dict[str, str] = {}
    mistakes: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        group = name.split("/")[0].split(".")[0].lstrip("+~")
        if group in config.GROUPS or ("." in name and group != "env"):
            settings.append(word)
        elif not equals or not value:
            mistakes.append(f"{word}: write NAME=VALUE, as in num_steps=5")
        elif name in asked:
            mistakes.append(f"{word}: {name} has two values")
        else:
            asked[name] = value
    if mistakes:
        raise ConfigError(mistakes)
    return settings, asked


def ui(overrides: Sequence[str], config_dir: Path | None, host: str, port: int) -> ExitCode:
    """Become MLflow's web server on the sweep's database (does not return), or say where it already runs."""
    place = config.load_place(overrides, config_dir)
    tracking.become_ui(place.tracking, place.study.name, host, port, _identity(place))
    return ExitCode.OK


def _identity(place: StudyPlace) -> str:
    """The study's identity, by which MLflow tells it from a namesake; empty when there is no study (yet)."""
    try:
        store = StudyStore.open(place.study.storage, place.study.name, place.study.dir, create=False)
    except ConfigError:
        return ""
    return str(store.fact("identity") or "")


def notes_on(spec: SweepSpec, engine: Engine, facts: HostFacts) -> list[str]:
    """What of the flags and variables of a sweep never has an effect on this host, each told once.

    Looked at in up to _MAX_SAMPLES configurations: what has an effect in one of them is not told.
    """
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    notes: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for values in samples(spec.space, _MAX_SAMPLES):
        config = to_config(base, values, spec.space)
        seen.update([*config.flags, *config.env])
        notes.update(set(engine.without_effect(config, facts)))
    return [note for note, times in notes.items() if times >= seen[note.partition(":")[0]]]


def remembering(spec: SweepSpec, engine: Engine) -> str:
    """Why some server of this sweep writes faster what it has written before; empty when none does.

    Looked at in up to _MAX_SAMPLES configurations.
    """
    base = ServerConfig(flags=spec.engine.flags, env=spec.engine.env)
    configs = (to_config(base, values, spec.space) for values in samples(spec.space, _MAX_SAMPLES))
    return next(filter(None, map(engine.remembers, configs)), "")


def arrival_notes(spec: SweepSpec) -> list[str]:
    """A line for each workload whose throughput is ranked on although its arrivals decide it."""
    ranked = {term.workload for term in spec.objective.terms}
    return [
        f"workload {workload.name}: {workload.request_rate:g} requests arrive per second whatever it does; "
        "a throughput tells configurations apart only where they cannot keep up"
        for workload in spec.workloads
        if workload.request_rate is not None and workload.name in ranked
    ]


def make_launcher(host: HostSpec) -> Launcher:
    """The launcher for a configured host, or for all hosts of a server that spans several. Raises ConfigError."""
    if host.ssh is None:
        return HostLauncher(LocalShell(host.name), _settings(host, host.name))
    destinations = [host.ssh.destination, *host.nodes]
    launchers = []
    for rank, destination in enumerate(destinations):
        name = host.name if rank == 0 else f"{host.name}/{destination}"
        try:
            target = SshTarget(**{**host.ssh.model_dump(), "destination": destination})
        except ValueError as error:
            raise ConfigError([f"host.ssh: {error}"]) from error
        launchers.append(HostLauncher(SshShell(target, name), _settings(host, name)))
    return launchers[0] if len(launchers) == 1 else GroupLauncher(launchers)


def _settings(host: HostSpec, name: str) -> HostSettings:
    return HostSettings(
        name=name,
        state_dir=host.state_dir,
        port_low=host.port_low,
        port_high=host.port_high,
        address=host.address,
        gpus=host.gpus,
        gpu_idle_mib=host.gpu_idle_mib,
        gpu_wait_s=host.gpu_wait_s,
    )


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
