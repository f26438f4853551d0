"""A launcher that starts nothing: the server it speaks of is the stand-in of fake_llama.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from launchers.base import CommandResult, LaunchSpec, ServerHandle, StopReport
from launchers.gpu_sample import GpuSample
from launchers.gpus import GpuReading

T = TypeVar("T")
STOPPED = StopReport(exit_code=0, signals=("TERM",), num_processes=1, duration_s=0.1, port_free=True)


class FakeLauncher:
    """Does what its attributes say; an exception in their place is raised. `calls` is what was asked of it.

    `lives` counts down with every look at the server: at 0 it is dead. None: it lives.
    """

    host = "here"

    def __init__(self, url: str, port: int) -> None:
        self.address = url
        self.port: int | Exception = port
        self.log: bytes | Exception = b"init: listening on http://\n"
        self.lives: int | None = None
        self.code: int | None = None
        self.owns: bool | Exception = True
        self.start_error: Exception | None = None
        self.stop_errors: list[Exception] = []
        self.calls: list[str] = []
        self.gpus: list[GpuReading | Exception] = []
        self.breaks = 0

    def hold(self) -> AbstractContextManager[None]:
        return nullcontext()

    def free_port(self) -> int:
        return raised_or(self.port)

    def start(self, spec: LaunchSpec) -> ServerHandle:
        self.calls.append("start")
        if self.start_error:
            raise self.start_error
        return ServerHandle(spec.nonce, self.host, 42, 7, "boot", spec.port, "/log", spec.nonce)

    def is_alive(self, handle: ServerHandle) -> bool:
        self.calls.append("is_alive")
        if self.lives:
            self.lives -= 1
        return self.lives != 0

    def exit_code(self, handle: ServerHandle) -> int | None:
        return self.code

    def owns_port(self, handle: ServerHandle) -> bool:
        return raised_or(self.owns)

    def logs(self, handle: ServerHandle, from_byte: int = 0, max_bytes: int = 1_000_000) -> bytes:
        return raised_or(self.log)[from_byte : from_byte + max_bytes]

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        raise AssertionError(f"nobody should run {argv}")

    def stop(self, handle: ServerHandle, grace_s: float) -> StopReport:
        self.calls.append("stop")
        if self.stop_errors:
            raise self.stop_errors.pop(0)
        return STOPPED

    def stop_leftovers(self, grace_s: float) -> tuple[str, ...]:
        return ()

    def gpu_sample(self, handle: ServerHandle) -> GpuSample | None:
        return None

    def settle(self) -> GpuReading | None:
        self.calls.append("settle")
        return raised_or(self.gpus.pop(0)) if self.gpus else None

    def num_breaks(self) -> int:
        return self.breaks

    def url(self, handle: ServerHandle) -> str:
        return self.address


def raised_or(value: T | Exception) -> T:
    if isinstance(value, Exception):
        raise value
    return value


class Interruption:
    """A shield that lets an interruption through: before its `n`th opening, or after its `n`th closing."""

    def __init__(self, error: BaseException, *, before: int = 0, after: int = 0) -> None:
        self.error = error
        self.before = before
        self.after = after
        self.opened = 0

    @contextmanager
    def shielded(self) -> Iterator[None]:
        self.opened += 1
        if self.opened == self.before:
            raise self.error
        yield
        if self.opened == self.after:
            raise self.error
