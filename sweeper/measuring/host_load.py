"""Many requests at once, sent from the host itself by a small client that the server's own Python runs.

Over SSH all answers would share one connection, and this process would time what that does to them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath

from launchers.base import CommandResult, Launcher
from launchers.errors import HostLost
from sweeper.engines.base import HttpRequest
from sweeper.errors import FailureKind, TrialError
from sweeper.measuring.load_wire import Exchange, job_text, pieces, read_answer
from sweeper.text import plain

__all__ = ["Arrivals", "Exchange", "HostLoad", "LoadReport", "SendAll", "python_of", "send_all_from"]

_MODULES = ("load_packing", "load_http", "load_client")
"""What runs on the host, in the order in which they import one another; the last one is started."""

_STARTER = """\
import sys, types
for name, text in {texts!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""
"""Makes modules of texts: nothing is written on the host, and an error names its module and line."""

VARIABLE = "SPECSWEEP_LOAD"
PIECES_AT_ONCE = 8
"""Linux takes 2 MiB of arguments and variables together, at the usual limit of the stack; this is half of it."""

_JOB_FILE = "load.job"
_PATH = 'case $1 in "~/"*) f=$HOME/${1#"~/"} ;; *) f=$1 ;; esac; shift; '
_REMOVE = _PATH + 'rm -f "$f"'
_WRITE = _PATH + 'umask 077; mkdir -p "${f%/*}" && printf %s "$@" > "$f"'
_WRITE_ON = _PATH + 'printf %s "$@" >> "$f"'
_SHORT_S = 60.0
_EXTRA_S = 60.0
"""For the way there and back, beside the time that the load itself may take."""


@cache
def client_text() -> str:
    """The program that `python -c` runs on the host: the modules of the client, and what starts it."""
    folder = files("sweeper.measuring")
    names = {f"sweeper.measuring.{name}": f"{name}.py" for name in _MODULES}
    return _STARTER.format(texts={name: folder.joinpath(file).read_text("utf-8") for name, file in names.items()})


@dataclass(frozen=True)
class Arrivals:
    """When requests are sent. At most `concurrency` are under way at once.

    `offsets_s`: when each arrives, in seconds from the first; empty: each next one when one has ended.
    """

    concurrency: int
    offsets_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class LoadReport:
    """The exchanges in the order of the requests, and what the client itself cost: CPU and wall-clock seconds."""

    exchanges: tuple[Exchange, ...]
    cpu_s: float
    wall_s: float


SendAll = Callable[[Sequence[HttpRequest], Arrivals, float], LoadReport]
"""Sends all requests, each of which may take so many seconds. Raises TrialError."""


@dataclass(frozen=True)
class HostLoad:
    """Where the load is sent from, and where to.

    `python`: the command that the client's text is given to; `address` and `port`: where the server listens, as
    seen on its own host. A job too long for a command line waits in a file in `state_dir`.
    """

    launcher: Launcher
    python: tuple[str, ...]
    address: str
    port: int
    state_dir: str

    def send_all(self, requests: Sequence[HttpRequest], arrivals: Arrivals, timeout_s: float) -> LoadReport:
        """Send all requests, and wait for their ends; what failed is told by each exchange.

        Raises TrialError: HOST_LOST when the host is, BENCHMARK_FAILED when the client cannot work there. Nothing
        of it is left on the host.
        """
        rounds = -(-len(requests) // arrivals.concurrency)
        whole_s = rounds * timeout_s + max(arrivals.offsets_s, default=0.0)
        job = job_text(
            requests,
            address=(self.address, self.port),
            concurrency=arrivals.concurrency,
            offsets_s=arrivals.offsets_s,
            timeout_s=timeout_s,
            whole_s=whole_s,
        )
        try:
            result = self._run(pieces(job), whole_s + _EXTRA_S)
        except HostLost as error:
            raise TrialError(FailureKind.HOST_LOST, f"the load on {self.launcher.host}: {error}") from error
        if result.exit_code != 0:
            raise self._cannot(result)
        try:
            exchanges, cpu_s, wall_s = read_answer(result.stdout, len(requests))
        except ValueError as error:
            message = f"the load on {self.launcher.host}: {error}"
            raise TrialError(FailureKind.BENCHMARK_FAILED, message) from error
        return LoadReport(tuple(exchanges), cpu_s, wall_s)

    def _run(self, job: list[str], timeout_s: float) -> CommandResult:
        """Run the client with the job. Raises HostLost."""
        argv = (*self.python, "-I", "-S", "-c", client_text())
        if len(job) <= PIECES_AT_ONCE:
            env = {f"{VARIABLE}_{number}": piece for number, piece in enumerate(job)}
            return self.launcher.run(argv, timeout_s, env)  # not as arguments: they would stand in process lists
        path = f"{self.state_dir}/{_JOB_FILE}"
        try:
            for start in range(0, len(job), PIECES_AT_ONCE):
                script = _WRITE_ON if start else _WRITE
                words = job[start : start + PIECES_AT_ONCE]
                written = self.launcher.run(("/bin/sh", "-c", script, "sh", path, *words), _SHORT_S)
                if written.exit_code != 0:
                    raise self._cannot(written)
            return self.launcher.run(argv, timeout_s, {f"{VARIABLE}_FILE": path})
        finally:
            with contextlib.suppress(HostLost):  # the client has removed it, unless it never came to that
                self.launcher.run(("/bin/sh", "-c", _REMOVE, "sh", path), _SHORT_S)

    def _cannot(self, result: CommandResult) -> TrialError:
        """Why the client did not work."""
        lines = [plain(line) for line in (result.stderr or result.stdout).decode("utf-8", "replace").splitlines()]
        last = next((line for line in reversed(lines) if line), "it said nothing")
        where = f"{' '.join(self.python)!r} on {self.launcher.host}"
        hint = ""
        if result.exit_code in (126, 127):
            hint = (
                "; concurrency above 1 needs Python 3.8 or newer on the host: the one in engine.command, "
                "or python3 in the PATH of a login"
            )
        message = f"the load's client, run by {where}: {last} (exit code {result.exit_code}){hint}"
        return TrialError(FailureKind.BENCHMARK_FAILED, message, tuple(lines[-20:]))


def send_all_from(load: HostLoad, tell_phase: Callable[[str], None]) -> SendAll:
    """`load.send_all`, but a person is told what goes on: nothing else is heard until all requests have ended."""

    def send_all(requests: Sequence[HttpRequest], arrivals: Arrivals, timeout_s: float) -> LoadReport:
        how = f"{len(arrivals.offsets_s)} arrivals" if arrivals.offsets_s else f"{arrivals.concurrency} at once"
        tell_phase(f"measuring: {len(requests)} requests, {how}")
        return load.send_all(requests, arrivals, timeout_s)

    return send_all


def python_of(command: Sequence[str]) -> tuple[str, ...]:
    """The Python that an engine's command names, with what it is wrapped in (`numactl`, `env`); else python3."""
    for index, word in enumerate(command):
        if PurePosixPath(word).name.startswith(("python", "pypy")):
            return tuple(command[: index + 1])
    return ("python3",)
