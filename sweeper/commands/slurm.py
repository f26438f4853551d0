"""`specsweep run hosts=slurm slurm.nodes=4`: one worker on each of so many nodes of a Slurm cluster."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from launchers.masking import secret_words
from launchers.shell import LocalShell
from launchers.slurm import Entry, SlurmJobs, option_mistake
from sweeper import config
from sweeper.commands.fleet import HOSTS, SLURM
from sweeper.commands.slurm_watch import Watch
from sweeper.errors import ConfigError, ExitCode
from sweeper.nights.notify import ends_told
from sweeper.spec import SweepSpec
from sweeper.storing.addresses import is_shared, masked
from sweeper.text import plain

_NODES = f"{SLURM}nodes"
_MAX_NODES = 1000


def run_through_slurm(arguments: argparse.Namespace) -> ExitCode:
    """Submit the workers and hand on what they print until all have ended; the worst of their exit codes.

    Raises ConfigError before anything is submitted, LauncherError when Slurm refuses, SweepInterrupted.
    """
    count, options = slurm_words(arguments.overrides)
    spec = _spec(arguments)
    where = [] if arguments.config_dir is None else ["--config-dir", str(arguments.config_dir.absolute())]
    entry = Entry("sweeper.__main__", ("run", "--plain", *where, "--", *arguments.overrides))
    folder = Path(spec.study.dir).absolute() / f"{spec.study.name}-slurm"
    jobs = SlurmJobs(folder, LocalShell("slurm"))
    watch = Watch(jobs, spec.study)

    def submit() -> tuple[str, ...]:
        ids = jobs.submit(entry, count, options)
        watch.say("slurm", f"submitted {', '.join(ids)}; what the jobs print is kept in {folder}")
        return ids

    name = spec.study.name
    with ends_told(spec.notify, name, "slurm", lambda text: watch.say("slurm", text)) as notifier:
        _make(folder, spec)
        try:
            code = watch.until_all_end(submit)
        except ImportError:
            package = "the package submitit: pip install 'specsweep[slurm]'"
            told = f"hosts: slurm needs {package}, in an environment that the nodes see too"
            raise ConfigError([told]) from None
        if code is not ExitCode.OK and all(ended is None for ended in watch.codes.values()):
            notifier.tell("interrupted", name, "slurm", "no job had a node yet; the same command goes on")
        for line in watch.untold:  # all other workers have told it themselves
            notifier.tell("aborted", name, "slurm", line)
    return code


def _make(folder: Path, spec: SweepSpec) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError([f"study.dir: {spec.study.dir!r} cannot be made: {error.strerror}"]) from error


def as_worker(node: str, arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments of the worker on a node: its host is the node itself, under its own name.

    A home folder is often one and the same on all nodes, so each has a state folder of its own in it.
    """
    rest = _without_slurm(arguments.overrides)
    state_dir = config.load(rest, arguments.config_dir).spec.host.state_dir
    own = [f"host.name={_quoted(node)}", f"host.state_dir={_quoted(f'{state_dir}/{node}')}"]
    return argparse.Namespace(**{**vars(arguments), "overrides": [*rest, *own]})


def slurm_words(overrides: Sequence[str]) -> tuple[int, dict[str, str]]:
    """How many nodes are asked for, and sbatch's options by their long names. Raises ConfigError."""
    pairs = [word.removeprefix(SLURM).partition("=") for word in overrides if word.startswith(SLURM)]
    given = {name.replace("_", "-"): value for name, _, value in pairs}
    nodes = given.pop("nodes", "")
    mistakes = [
        f"{SLURM}{plain(name, 60)}: {plain(value, 60)!r} {wrong}"
        for name, value in given.items()
        if (wrong := option_mistake(name, value))
    ]
    if not (nodes.isdecimal() and len(nodes) < 5 and 1 <= int(nodes) <= _MAX_NODES):
        mistakes.insert(
            0, f"{_NODES}: {plain(nodes, 60)!r} should be how many nodes get a worker, 1 to {_MAX_NODES}"
        )
    if mistakes:
        raise ConfigError(mistakes)
    return int(nodes), given


def _spec(arguments: argparse.Namespace) -> SweepSpec:
    """The sweep as each node will read it. Raises ConfigError."""
    spec = config.load(_without_slurm(arguments.overrides), arguments.config_dir).spec
    mistakes = []
    if not is_shared(spec.study.storage):
        shown = masked(spec.study.storage)
        mistakes.append(f"study.storage: {shown!r} belongs to one process; nodes share postgresql://HOST/DATABASE")
    if spec.host.ssh is not None:
        mistakes.append(f"host.kind: {spec.host.kind!r}: a node is its worker's own machine; choose host=local")
    secret = "holds a secret, and Slurm's files keep these words; give it in the environment"
    mistakes += [f"{w.partition('=')[0]}: {secret}" for w in arguments.overrides if any(secret_words([w]))]
    if mistakes:
        raise ConfigError(mistakes)
    return spec


def _without_slurm(overrides: Sequence[str]) -> list[str]:
    return [word for word in overrides if not word.startswith((HOSTS, SLURM))]


def _quoted(text: str) -> str:
    """A value that Hydra takes as text, whatever it looks like."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
