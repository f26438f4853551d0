"""Runs servers of a stand-in host in tests, and proves that nothing of them is left."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gpu_host.host import GpuHost

PATIENCE_S = 60.0
"""A guard against hanging for ever; no test waits for it when all is well."""


def speculative(
    steps: int = 3, topk: int = 1, draft_tokens: int = 4, drafter: str = "small-eagle3", algorithm: str = "EAGLE3"
) -> tuple[str, ...]:
    """The flags of a server that speculates; `drafter` is one of the host's model folders."""
    path = ("--speculative-draft-model-path", f"{{models}}/{drafter}")
    numbers = {"num-steps": steps, "eagle-topk": topk, "num-draft-tokens": draft_tokens}
    flags = [word for name, value in numbers.items() for word in (f"--speculative-{name}", str(value))]
    return ("--speculative-algorithm", algorithm, *path, *flags)


@dataclass(frozen=True)
class Server:
    """One server that was started: its process, port and log."""

    process: subprocess.Popen[bytes]
    port: int
    log_path: Path

    def log(self) -> str:
        """Everything it wrote so far."""
        return self.log_path.read_text(errors="replace")

    def wait_for(self, text: str) -> str:
        """The log once it holds `text`; fails when the server ends, or time is up, without it."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.log():
            ended = self.process.poll() is not None and text not in self.log()
            assert not ended, f"ended with {self.process.returncode} without {text!r}:\n{self.log()[-3000:]}"
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.log()[-3000:]}"
            time.sleep(0.02)
        return self.log()

    def wait_ready(self) -> str:
        """The log of a server that serves."""
        return self.wait_for("The server is fired up and ready to roll!")

    def exit_code(self) -> int:
        """How it ended, once it has: negative after a signal."""
        return self.process.wait(PATIENCE_S)

    def ask(self, path: str, body: Any = None, timeout_s: float = PATIENCE_S) -> tuple[int, bytes]:
        """Status and body of one request; POST with a body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request("GET" if body is None else "POST", path, data)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The JSON at `path`."""
        status, body = self.ask(path)
        assert status == 200, (status, body[:300])
        return json.loads(body)

    def generate(self, text: str = "Tell me a story", max_new_tokens: int = 24, **more: Any) -> Any:
        """One whole answer."""
        body = {"text": text, "sampling_params": {"max_new_tokens": max_new_tokens, "temperature": 0}, **more}
        status, answer = self.ask("/generate", body)
        assert status == 200, (status, answer[:300])
        return json.loads(answer)

    def stream(self, text: str = "Tell me a story", max_new_tokens: int = 24) -> list[dict[str, Any]]:
        """All events of a streamed answer, without the last [DONE]."""
        sampling = {"max_new_tokens": max_new_tokens, "temperature": 0}
        _, body = self.ask("/generate", {"text": text, "stream": True, "sampling_params": sampling})
        events = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line]
        assert events[-1] == b"[DONE]"
        return [json.loads(event) for event in events[:-1]]

    def members(self) -> list[int]:
        """Living processes of the server's session."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] not in "ZX":
                    found.append(int(path.parent.name))
        return found

    def child(self, title: str) -> int:
        """The process with this title."""
        for pid in self.members():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(title.encode()):
                    return pid
        raise AssertionError(f"no process is called {title}")


def free_port() -> int:
    """A port that nothing listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_gone(server: Server) -> None:
    """Until the session is empty; fails with what is left."""
    deadline = time.monotonic() + PATIENCE_S
    while server.members():
        assert time.monotonic() < deadline, server.members()
        time.sleep(0.02)


def is_open(port: int) -> bool:
    """Whether anything listens on `port`."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until(is_so: Callable[[], bool]) -> bool:
    """Wait until it is so; fails when that takes for ever."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return True


@contextlib.contextmanager
def running(
    host: GpuHost,
    flags: Sequence[str] = (),
    *,
    tp: int = 1,
    model: str = "small-llama",
    env: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Iterator[Server]:
    """A server with these flags ({models} is filled in). On the way out all of its session is killed."""
    port = port or free_port()
    log_path = host.folder / f"log-{port}"
    argv = [
        *host.command,
        "--model-path",
        host.model(model),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--tp",
        str(tp),
    ]
    argv += [flag.format(models=host.folder / "models") if "{models}" in flag else flag for flag in flags]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )
    server = Server(process, port, log_path)
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        host.kill_orphans()
        wait_gone(server)
