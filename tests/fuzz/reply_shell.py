"""A host that answers whatever it is asked with a whole reply, whose kind and body are the fuzzer's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

from launchers.base import CommandResult, LaunchSpec, ServerHandle
from launchers.host import HostLauncher

HANDLE = ServerHandle("s-1", "gpu", 12, 34, "b-1", 30000, "/state/servers/s-1/log", "s-1")
_CALL = re.compile(r"^\{ main (\w+) ", re.MULTILINE)


class ReplyShell:
    """The first line of `content` is the kind of every reply, the rest its body."""

    def __init__(self, content: bytes) -> None:
        self.name = "gpu"
        self._kind, _, self._body = content.partition(b"\n")

    def run(self, script: str, timeout_s: float) -> CommandResult:
        del timeout_s
        call = _CALL.search(script)
        assert call is not None
        frame = b"\n@specsweep " + call[1].encode()
        return CommandResult(
            0, frame + b" begin " + self._kind + b"\n" + self._body + frame + b" end 0\n", self._body
        )

    def calls(self, launcher: HostLauncher) -> Iterator[Callable[[], object]]:
        """What such a reply answers, and something else that a launcher may be asked."""
        asked: dict[bytes, Callable[[], object]] = {
            b"port": launcher.free_port,
            b"started": lambda: launcher.start(LaunchSpec(("server",), 30000, "s-1")),
            b"status": lambda: launcher.status(HANDLE),
            b"owns": lambda: launcher.owns_port(HANDLE),
            b"logs": lambda: launcher.logs(HANDLE),
            b"run": lambda: launcher.run(("true",), 1.0),
            b"stopped": lambda: launcher.stop(HANDLE, 0.0),
            b"list": lambda: launcher.stop_leftovers(0.0),
            b"gpus": launcher.settle,
            b"sample": lambda: launcher.gpu_sample(HANDLE),
        }
        if self._kind in asked:
            yield asked[self._kind]
        yield list(asked.values())[len(self._body) % len(asked)]

    def address(self, port: int) -> str:
        return f"127.0.0.1:{port}"

    def num_breaks(self) -> int:
        return 0

    def hold(self, lock_path: str) -> AbstractContextManager[None]:
        del lock_path
        return nullcontext()
