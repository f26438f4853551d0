"""A real SGLang started by hand, past the launcher and the engine: what they are checked against."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sweeper.spec import FlagValue
from tests.real_sglang.environment import RealSglang

READY_LINE = "The server is fired up and ready to roll!"
START_S = 240
STOP_S = 90
STAT = re.compile(r"(?P<pid>\d+) \(.*\) (?P<state>\S) (?P<ppid>\d+) (?P<pgid>\d+) (?P<session>\d+) ", re.DOTALL)


@dataclass(frozen=True)
class Process:
    """One process of the server, as /proc tells it. `title`: its command line, with spaces."""

    pid: int
    ppid: int
    pgid: int
    session: int
    title: str


@dataclass
class Running:
    """A started server: its process, log and port. `health`: seconds since the start, and each new status."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int
    started: float
    health: list[tuple[float, int]] = field(default_factory=list)
    port_open_s: float = 0
    ready_line_s: float = 0

    def age_s(self) -> float:
        """Seconds since the start, to a hundredth."""
        return round(time.monotonic() - self.started, 2)

    def get(self, path: str, body: bytes | None = None, timeout_s: float = 120) -> tuple[int, bytes]:
        """Status and body of a request; POST with a body. Status 0: no answer, or one cut short."""
        headers = {"Content-Type": "application/json"} if body else {}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except (OSError, http.client.HTTPException):
            return 0, b""

    def tree(self) -> list[Process]:
        """The server and everything else in its session, oldest first. Zombies are not counted."""
        return [each for each in _processes() if each.session == self.process.pid]


@contextlib.contextmanager
def running(real: RealSglang, flags: Mapping[str, FlagValue], log: Path) -> Iterator[Running]:
    """A server in a session of its own, log to `log`; everything in that session is killed at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    argv = [*real.command, *written({**flags, "port": port})]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            argv,
            env={**env, **real.env},
            stdout=sink,
            stderr=sink,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    server = Running(process, log, port, time.monotonic())
    try:
        yield server
    finally:
        for each in server.tree():
            with contextlib.suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)
        process.wait()


def written(flags: Mapping[str, FlagValue]) -> list[str]:
    """Flags as arguments: `--name value`, and `--name` alone for True."""
    told = {f"--{name.replace('_', '-')}": value for name, value in flags.items() if value is not False}
    return [part for name, value in told.items() for part in ([name] if value is True else [name, str(value)])]


def wait_ready(server: Running) -> bool:
    """Whether it got ready: its line, and then a healthy answer. False: it ended by itself, or took too long."""
    while server.process.poll() is None and server.age_s() < START_S:
        if not server.ready_line_s and READY_LINE in server.log.read_text(errors="replace"):
            server.ready_line_s = server.age_s()
        status, _ = server.get("/health", timeout_s=30)
        if status and not server.port_open_s:
            server.port_open_s = server.age_s()
        if not server.health or server.health[-1][1] != status:
            server.health.append((server.age_s(), status))
        if status == 200 and server.ready_line_s:
            return True
        time.sleep(0.1)
    return False


def terminate(server: Running) -> list[str]:
    """SIGTERM to the leader, and what left when; the exit code is last. Raises TimeoutError."""
    told, asked = [], time.monotonic()
    left = {each.pid: each.title for each in server.tree()}
    server.process.send_signal(signal.SIGTERM)
    while server.process.poll() is None or left:
        waited = round(time.monotonic() - asked, 2)
        if waited > STOP_S:
            raise TimeoutError(f"still there {STOP_S} s after SIGTERM: {sorted(left.values())}")
        alive = {each.pid for each in server.tree()}
        told += [f"{waited} s: {left.pop(pid)}" for pid in sorted(left.keys() - alive)]
        time.sleep(0.02)
    return [*told, f"exit code {server.process.returncode}"]


def ended(server: Running) -> list[str]:
    """The exit code of a server that ends by itself. Raises subprocess.TimeoutExpired."""
    return ["it ended by itself", f"exit code {server.process.wait(STOP_S)}"]


def _processes() -> Iterator[Process]:
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        with contextlib.suppress(OSError):
            stat = STAT.match((folder / "stat").read_text(errors="replace"))
            if stat and stat["state"] not in "ZX":
                title = (folder / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
                yield Process(int(stat["pid"]), int(stat["ppid"]), int(stat["pgid"]), int(stat["session"]), title)
