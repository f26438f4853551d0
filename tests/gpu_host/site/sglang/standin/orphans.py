"""What some faults leave behind: processes that escaped, memory that nobody holds, a port that somebody took."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from . import gpus, settings
from .launch import Launch

if TYPE_CHECKING:
    from .startup import Startup

STAY = "import signal; signal.alarm({}); signal.pause()"


def escape(launch: Launch, work: Callable[[], None]) -> None:
    """Run `work` in a child of a child, without environment; it is noted in STATE/orphans, for whoever cleans up.

    It stays in the server's session, unless the fault's detail is "setsid".
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if launch.fault.detail == "setsid":
        os.setsid()
    if os.fork():
        os._exit(0)
    settings.end_in_time()
    with (settings.state() / "orphans").open("a") as stream:
        stream.write(f"{os.getpid()}.{gpus.start_time(os.getpid())}\n")
    work()
    os._exit(0)


def _stay() -> None:
    os.execve(sys.executable, ["python3", "-I", "-S", "-c", STAY.format(settings.max_s())], {})


def leave_behind(launch: Launch, start: Startup) -> None:
    """The faults of memory, set up by rank 0 once it holds its own."""
    state, gpu = settings.state(), start.gpu
    if launch.fault.name == "orphan_memory":

        def keep_memory() -> None:
            gpus.hold(state, gpu, 30_000, os.getpid())
            _stay()

        escape(launch, keep_memory)
    if launch.fault.name == "gpu_memory_stuck":
        gpus.leak(state, gpu, 30_000, os.getpid(), launch.fault.number(3600))


def keep_port(launch: Launch, listening: int) -> None:
    """A child of a child keeps the socket that the server listens on."""
    if launch.fault.name == "orphan_port":

        def stay_with_socket() -> None:
            os.set_inheritable(listening, True)
            _stay()

        escape(launch, stay_with_socket)


def steal_port(launch: Launch) -> None:
    """Somebody else's server takes the port first, and answers as if all were well; it stays for 60 s."""
    if launch.fault.name != "port_stolen":
        return
    host, port = launch.args["host"], launch.args["port"]
    ready, told = os.pipe()

    def squat() -> None:
        os.setsid()
        signal.alarm(int(launch.fault.number(60)))
        site = Path(__file__).parents[2]
        code = f"import sys; sys.path.insert(0, {str(site)!r}); from sglang.standin import squatter; "
        os.set_inheritable(told, True)
        call = f"squatter.serve({host!r}, {port}, {told})"
        os.execve(sys.executable, ["python3", "-I", "-S", "-c", code + call], {})

    escape(launch, squat)
    os.close(told)
    os.read(ready, 1)
    os.close(ready)
