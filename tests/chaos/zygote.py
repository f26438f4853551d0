"""Starts `specsweep` by a fork of a process that has everything imported: 0.1 s instead of seconds of imports.

    with Zygote() as zygote:
        command = zygote.start(["run", ...], folder)
        command.wait()

The command is the real one in a session of its own; its output goes to a file. `plan` says where it is to be
struck (boundaries.py), `cut_names` makes its resolver one that asks a file (see `_resolve_from`).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from launchers.clock import SystemClock
from sweeper.spec import TrackingSpec
from sweeper.tracking import Tracker
from tests.chaos import boundaries
from tests.tracking.studies import FakeStudy

PATIENCE_S = 240.0
NEEDED = """
alembic hydra mlflow mlflow.store.tracking.sqlalchemy_store mlflow.tracking optuna paramiko psycopg pydantic rich
requests scipy.stats sqlalchemy sweeper.__main__ sweeper.commands.report sweeper.commands.run
analysis.report sweeper.commands.status
sweeper.commands.stop sweeper.loop sweeper.samplers.choice sweeper.tracking
"""


@dataclass
class Command:
    """One started command. `status`: as waitpid gives it, once it has ended."""

    pid: int
    output_path: Path
    status: int | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def output(self) -> str:
        """What it has said so far."""
        return self.output_path.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return not self.ended.is_set()

    def send(self, number: signal.Signals) -> None:
        """A signal, if it still runs."""
        if self.is_running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Its exit code, or minus the signal that ended it. One that hangs is killed, and the caller told."""
        if not self.ended.wait(patience_s):
            os.killpg(self.pid, signal.SIGKILL)
            self.ended.wait()
            raise AssertionError(f"still running after {patience_s:g} s:\n{self.output[-3000:]}")
        assert self.status is not None
        return os.waitstatus_to_exitcode(self.status)

    def is_stopped(self) -> bool:
        """Whether it is suspended."""
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].startswith("T")
        return False


def start_alone(
    argv: Sequence[str], folder: Path, outputs: Path, *, env: Mapping[str, str], path: Path = boundaries.ROOT
) -> Command:
    """`specsweep ARGV` as a process of its own, for what a fork cannot have: a preloaded library, other files."""
    output = outputs / f"output-{time.monotonic_ns()}"
    whole = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1", **env}
    with output.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "sweeper", *argv], cwd=folder, env=whole, stdout=file,
                                   stderr=file, stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
    command = Command(process.pid, output)

    def watch() -> None:
        code = process.wait()
        command.status = code << 8 if code >= 0 else -code
        command.ended.set()

    threading.Thread(target=watch, daemon=True).start()
    return command


class Zygote:
    """See the module."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.zygote"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._commands: dict[int, Command] = {}
        self._started: list[int] = []
        self._news = threading.Condition()
        self._ordering = threading.Lock()
        self._mlflow: Path | None = None
        self.outputs = Path(tempfile.mkdtemp(prefix="specsweep-chaos-"))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for command in list(self._commands.values()):
            if command.is_running:
                os.killpg(command.pid, signal.SIGKILL)
                command.ended.wait(10)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join(10)
        shutil.rmtree(self.outputs)

    def start(
        self,
        argv: Sequence[str],
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
        plan: boundaries.Plan | None = None,
        name_file: Path | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> Command:
        """Run `specsweep ARGV` in `folder`. `limits`: resource limits by name, as RLIMIT_FSIZE."""
        output = self.outputs / f"output-{time.monotonic_ns()}"
        output.touch()
        order = {
            "argv": list(argv),
            "folder": str(folder),
            "output": str(output),
            "env": dict(env or {}),
            "plan": plan.data() if plan else None,
            "names": str(name_file) if name_file else "",
            "limits": dict(limits or {}),
        }
        assert self._process.stdin is not None
        with self._ordering, self._news:  # one order at a time: the next pid that is told is this one's
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            assert self._news.wait_for(lambda: bool(self._started), 120), "the zygote gives no answer"
            pid = self._started.pop()
            self._commands[pid].output_path = output
            return self._commands[pid]

    def new_mlflow(self) -> Path:
        """A database as MLflow makes it, which takes seconds: made once, to be copied."""
        if self._mlflow is None:
            self._mlflow = self.outputs / "mlflow.db"
            spec = TrackingSpec(
                uri=f"sqlite:///{self._mlflow}", artifact_location=str(self._mlflow.parent), sync_s=300
            )
            assert Tracker(spec, SystemClock()).sync(FakeStudy(name="other")).error == ""
        return self._mlflow

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self._listen(lines)

    def _listen(self, lines: IO[str]) -> None:
        for line in lines:
            told = json.loads(line)
            with self._news:
                if "status" in told:
                    command = self._commands[told["pid"]]
                    command.status = told["status"]
                    command.ended.set()
                else:
                    self._commands[told["pid"]] = Command(told["pid"], Path())
                    self._started.append(told["pid"])
                self._news.notify_all()


def main() -> None:
    """The process that is forked. Orders come as lines of JSON; answers are the pid, and later the status."""
    for name in NEEDED.split():
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    signal.set_wakeup_fd(-1)
    for line in sys.stdin:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            _become(json.loads(line))
        _tell({"pid": pid})
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            _tell({"pid": ended[0], "status": ended[1]})


def _tell(answer: Mapping[str, int]) -> None:
    os.write(1, (json.dumps(answer) + "\n").encode())


def _become(order: Mapping[str, Any]) -> None:
    """Be the command, to its end."""
    code = 1
    try:
        os.setsid()
        output = os.open(order["output"], os.O_WRONLY | os.O_APPEND)
        for number in (1, 2):
            os.dup2(output, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(order["folder"])
        os.environ.update(order["env"])
        sys.argv = ["specsweep", *order["argv"]]
        _limit(order["limits"])
        if order["names"]:
            _resolve_from(Path(order["names"]))
        if order["plan"]:
            boundaries.Plan(**order["plan"]).install()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        from sweeper.__main__ import main as specsweep

        code = int(specsweep(order["argv"]))
        sys.stdout.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001  (a fork must not go on as the zygote)
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _limit(limits: Mapping[str, int]) -> None:
    import resource

    for name, value in limits.items():
        resource.setrlimit(getattr(resource, name), (value, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _resolve_from(names: Path) -> None:
    """A resolver of our own: `NAME ADDRESS` per line of a file; a name that is not in it cannot be resolved."""
    real = socket.getaddrinfo

    def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        known = dict(line.split() for line in names.read_text().splitlines())
        if not isinstance(host, str) or host.replace(".", "").isdigit():
            return real(host, *args, **kwargs)
        if host not in known:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real(known[host], *args, **kwargs)

    socket.getaddrinfo = resolve


if __name__ == "__main__":
    main()
