"""`specsweep run hosts=[a,b]`: one worker per host, each a process of its own, on one shared study."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence

from launchers.children import run_side_by_side
from launchers.errors import LauncherError
from sweeper import config
from sweeper.errors import ConfigError, ExitCode
from sweeper.host_spec import HostSpec
from sweeper.nights.notify import ends_told
from sweeper.storing.addresses import is_shared, masked
from sweeper.storing.leases import Worker
from sweeper.streams import lenient
from sweeper.text import plain, without_codes

HOSTS, SLURM = "hosts=", "slurm."
"""How the words begin that choose several hosts. They are none of the configuration's."""

_NAMES = re.compile(r"\[?\s*([\w./-]+(?:\s*,\s*[\w./-]+)*)\s*\]?")
_MAX_LINE = 4000
_WORST_FIRST = (
    ExitCode.BUG,
    ExitCode.ABORTED,
    ExitCode.MISMATCH,
    ExitCode.HOST_BUSY,
    ExitCode.USAGE,
    ExitCode.TERMINATED,
    ExitCode.INTERRUPTED,
    ExitCode.OK,
)


def worker_of(host: HostSpec) -> Worker:
    """This process as a worker on a host."""
    ssh = host.ssh
    return Worker.new(host.name, "" if ssh is None else f"{ssh.destination}:{ssh.port}")


def is_for_slurm(overrides: Sequence[str]) -> bool:
    """Whether the hosts are to be nodes that Slurm gives."""
    return [word for word in overrides if word.startswith(HOSTS)][-1:] == [f"{HOSTS}slurm"]


def hosts_of(overrides: Sequence[str]) -> tuple[str, ...] | None:
    """The options of the group `host` in `hosts=[a,b]`; None without that.

    Raises ConfigError; also for `hosts=slurm`, whose nodes nobody knows before they are given, and for `slurm.*`.
    """
    if is_for_slurm(overrides):
        raise ConfigError(["hosts: slurm is for specsweep run alone; leave hosts and slurm.* away here"])
    if stray := [text.partition("=")[0] for text in overrides if text.startswith(SLURM)]:
        raise ConfigError([f"{plain(stray[0], 60)}: goes with hosts=slurm, which asks Slurm for nodes"])
    given = [text.removeprefix(HOSTS) for text in overrides if text.startswith(HOSTS)]
    if not given:
        return None
    found = _NAMES.fullmatch(given[-1])
    if found is None:
        raise ConfigError([f"hosts: {plain(given[-1], 60)!r} should be a list of options of host: hosts=[a,b]"])
    names = tuple(name.strip() for name in found[1].split(","))
    if len(set(names)) < len(names):
        raise ConfigError([f"hosts: {given[-1]!r} names a host twice"])
    if other := [text for text in overrides if text.startswith("host=")]:
        raise ConfigError([f"{other[0]}: hosts={given[-1]} chooses the hosts already"])
    return names


def run_on_all(hosts: Sequence[str], arguments: argparse.Namespace) -> ExitCode:
    """Run one worker per host until all have ended; the worst of their exit codes.

    Raises ConfigError, before anything is started, with the mistakes that any of the hosts has.
    """
    rest = [text for text in arguments.overrides if not text.startswith(HOSTS)]
    spec = specs_of_hosts(hosts, arguments)[0].spec
    where = [] if arguments.config_dir is None else ["--config-dir", str(arguments.config_dir)]
    command = [sys.executable, "-m", "sweeper", "run", "--plain", *where, "--", *rest]
    width, out = max(map(len, hosts)), lenient(sys.stdout)

    def show(name: str, line: str) -> None:
        out.write(f"{name:{width}} | {without_codes(line)[:_MAX_LINE]}\n")
        out.flush()

    def say(text: str) -> None:
        show("hosts", text)

    with ends_told(spec.notify, spec.study.name, ",".join(hosts), say) as notifier:
        try:
            codes = run_side_by_side({name: [*command, f"host={name}"] for name in hosts}, show)
        except OSError as error:
            raise LauncherError(f"the workers could not be started: {error}") from error
        for name, code in codes.items():
            ended = f"ended with exit code {code}" if code >= 0 else f"killed by signal {-code}"
            show(name, ended)
            if code < 0:  # all others have told it themselves
                notifier.tell("aborted", spec.study.name, name, f"the worker was {ended}")
    return worst(codes.values())


def specs_of_hosts(hosts: Sequence[str], arguments: argparse.Namespace) -> list[config.Loaded]:
    """The configuration of each host's worker.

    Raises ConfigError: for what is wrong with any host, each line once.
    """
    rest = [text for text in arguments.overrides if not text.startswith(HOSTS)]
    overrides = {name: [*rest, f"host={name}"] for name in hosts}
    mistakes: list[str] = []
    loaded: dict[str, config.Loaded] = {}
    for name, words in overrides.items():
        try:
            loaded[name] = config.load(words, arguments.config_dir)
        except ConfigError as error:
            mistakes += error.mistakes
    specs = [each.spec for each in loaded.values()]
    for spec in specs:
        if not is_shared(spec.study.storage):
            shown = masked(spec.study.storage)
            mistakes.append(
                f"study.storage: {shown!r} belongs to one process; hosts share postgresql://HOST/DATABASE"
            )
    names = [spec.host.name for spec in specs]
    if twice := {name for name in names if names.count(name) > 1}:
        mistakes.append(f"host.name: {sorted(twice)[0]!r} is the name of several of {', '.join(overrides)}")
    if mistakes:
        raise ConfigError(list(dict.fromkeys(mistakes)))
    return list(loaded.values())


def worst(codes: Iterable[int]) -> ExitCode:
    """The worst of several workers' exit codes; one that was killed has to be looked into."""
    known = [ExitCode(code) if code in set(ExitCode) else ExitCode.ABORTED for code in codes]
    return min(known, key=_WORST_FIRST.index)
