"""A server that is hard to end. Run as a program: stubborn.py MODE FOLDER PORT TOKEN.

Every process notes "MODE PID" in FOLDER/pids when it is ready, and carries TOKEN on its command line.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path


def note(mode: str, folder: str) -> None:
    with (Path(folder) / "pids").open("a") as pids:
        pids.write(f"{mode} {os.getpid()}\n")


def spawn(mode: str, session: bool = False, bare: bool = False, mute: bool = False) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-I", "-S", __file__, mode, *sys.argv[2:]]
    output = subprocess.DEVNULL if mute else None
    env: dict[str, str] | None = {} if bare else None
    return subprocess.Popen(argv, start_new_session=session, env=env, stdout=output, stderr=output)


def retitle(title: str) -> None:
    """Overwrite the memory of the arguments and the environment with a title, as setproctitle does."""
    fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
    first, last = int(fields[45]), int(fields[48])  # arg_start and env_end
    text = title.encode()
    ctypes.memset(first, 0, last - first)
    ctypes.memmove(first, text, len(text))


def idle() -> None:
    while True:
        signal.pause()


def listen(port: int) -> None:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    server.detach()  # stays open until the process ends


def wait_for_go() -> None:
    """Until the test creates FOLDER/go."""
    go = Path(sys.argv[2]) / "go"
    while not go.exists():
        threading.Event().wait(0.01)


def end_when_told(heirs: bool) -> None:
    """On SIGTERM it ends its three children in turn, or not at all: code 5, or 9 if one ended before its turn."""
    children = [spawn("plain") for _ in range(3)]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    note(sys.argv[1], sys.argv[2])
    signal.sigwait({signal.SIGTERM})
    early = signal.sigtimedwait({signal.SIGCHLD}, 0.3) is not None  # while a server that is busy would see to more
    while children and not heirs:
        early = early or any(child.poll() is not None for child in children)
        child = children.pop()
        child.terminate()
        child.wait()
    sys.exit(9 if early else 5)


def orderly() -> None:
    end_when_told(heirs=False)


def negligent() -> None:
    end_when_told(heirs=True)


def telling() -> None:
    """Notes itself again, as "told", for a SIGTERM; and goes on."""
    signal.signal(signal.SIGTERM, lambda *_: note("told", sys.argv[2]))


def deaf_parent() -> None:
    deaf()
    spawn("telling")


def end_main_thread() -> None:
    """The kernel shows such a process as a zombie although its other threads run."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    note(sys.argv[1], sys.argv[2])
    ctypes.CDLL(None).pthread_exit(None)


def plain() -> None:
    return


def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def serving() -> None:
    listen(int(sys.argv[3]))


def family() -> None:
    for mode in ("deaf", "plain", "nested"):
        spawn(mode)


def nested() -> None:
    spawn("deaf")


def escaping() -> None:
    """Its grandchild leaves the session and is orphaned at once."""
    spawn("orphaning").wait()


def orphaning() -> None:
    spawn("deaf", session=True)
    sys.exit(0)


def bare_child() -> None:
    spawn("plain", bare=True)


def bare_orphan() -> None:
    """Its grandchild drops the environment and is orphaned, but stays in the session."""
    spawn("bare_orphaning").wait()


def bare_orphaning() -> None:
    spawn("deaf", bare=True)
    sys.exit(0)


def vanishing() -> None:
    """Its grandchild leaves the session and drops the environment; it is orphaned when the test says so."""
    spawn("late_orphaning").wait()


def late_orphaning() -> None:
    spawn("deaf", session=True, bare=True)
    wait_for_go()
    sys.exit(0)


def usurping() -> None:
    """Leaves behind nothing but an unseen orphan, without session and environment, that holds the port."""
    spawn("port_orphaning").wait()
    wait_for_go()
    sys.exit(0)


def port_orphaning() -> None:
    spawn("serving", session=True, bare=True, mute=True)
    sys.exit(0)


def scheduler() -> None:
    retitle(f"sglang::scheduler_TP0 {sys.argv[4]}")
    deaf()


def tree() -> None:
    """The shape of an SGLang server: retitled workers, a tracker, and compile workers in another session."""
    for mode, session in (("scheduler", False), ("plain", False), ("nested", True)):
        spawn(mode, session=session)


def hiding() -> None:
    """Its grandchild is retitled, in a session of its own, an orphan and unseen: all it keeps is its output."""
    spawn("hiding_parent").wait()


def hiding_parent() -> None:
    spawn("scheduler", session=True)
    sys.exit(0)


def mute() -> None:
    """The same, but its grandchild has given up its output too."""
    spawn("mute_parent").wait()


def mute_parent() -> None:
    spawn("scheduler", session=True, mute=True)
    sys.exit(0)


def breeding() -> None:
    """Ends when told, after it has made a retitled child that nobody has seen, in its session."""
    wait_for_go()
    spawn("scheduler")
    note("breeding", sys.argv[2])
    os.kill(os.getpid(), signal.SIGKILL)


def leaving_a_server() -> None:
    """Ends with code 3 when told, while its child, in the same session, goes on serving."""
    spawn("serving")
    wait_for_go()
    sys.exit(3)


MODES: dict[str, Callable[[], None]] = {
    mode.__name__: mode
    for mode in (
        plain,
        deaf,
        serving,
        family,
        nested,
        escaping,
        orphaning,
        bare_child,
        bare_orphan,
        bare_orphaning,
        vanishing,
        late_orphaning,
        usurping,
        port_orphaning,
        scheduler,
        tree,
        hiding,
        hiding_parent,
        mute,
        mute_parent,
        breeding,
        leaving_a_server,
        orderly,
        negligent,
        telling,
        deaf_parent,
        end_main_thread,
    )
}

if __name__ == "__main__":
    MODES[sys.argv[1]]()
    note(sys.argv[1], sys.argv[2])
    idle()
