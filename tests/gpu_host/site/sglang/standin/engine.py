"""The parent's side of the process tree: it starts the children, talks to them, notices their death."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from . import detokenizer, log, scheduler, settings
from .launch import Launch, Link, Message

DIED = (
    "RuntimeError: Rank {rank} scheduler died during initialization (exit code: {code}). If exit code is -9 "
    "(SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check."
)


class SchedulerDied(Exception):
    """A rank ended before it was ready."""


class Engine:
    """The children of one server. `stats`: what rank 0 said last; `unhealthy`: a health check has failed."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.children: dict[int, str] = {}
        self.info: Message = {}
        self.stats: Message = {}
        self.ready = False
        self.unhealthy = False
        self.frozen = threading.Event()
        self.last_heard = 0.0
        self.events: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._links: list[Link] = []
        self._send_lock = threading.Lock()
        self._answers: dict[str, queue.SimpleQueue[Message]] = {}
        self._replies: dict[str, queue.SimpleQueue[Message]] = {}
        self._text: Link | None = None
        self._counter = 0
        self._detokenizer = 0

    def start(self) -> None:
        """Start all children; they go through their start by themselves. Call it before any thread is started."""
        rank_end, text_in = socket.socketpair()
        text_out, self_end = socket.socketpair()
        for rank in range(self.launch.num_ranks):
            mine, theirs = socket.socketpair()
            fds = (theirs.fileno(), rank_end.fileno())
            self._fork(f"scheduler_{rank}", functools.partial(scheduler.main, rank, *fds), fds)
            theirs.close()
            self._links.append(Link(mine))
            self._links[-1].send(self.launch.to_json())
        ends = (text_in.fileno(), text_out.fileno())
        self._detokenizer = self._fork("detokenizer", functools.partial(detokenizer.main, *ends), ends)
        for end in (rank_end, text_in, text_out):
            end.close()
        self._text = Link(self_end)
        self._start_tracker()

    def _fork(self, name: str, work: Callable[[], None], kept: tuple[int, ...]) -> int:
        """A child that keeps these descriptors only. The real one is spawned: it starts a new Python, which here
        would cost more than all the rest; what can be seen from outside is the same.
        """
        pid = os.fork()
        if pid:
            self.children[pid] = name
            return pid
        code = 1
        try:
            for number in (signal.SIGQUIT, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            for descriptor in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
                if descriptor > 2 and descriptor not in kept:
                    with contextlib.suppress(OSError):
                        os.close(descriptor)
            work()
            code = 0
        finally:
            os._exit(code)

    def _start_tracker(self) -> None:
        """The resource tracker of multiprocessing: the real thing, with nothing to track."""
        held, tracked = os.pipe()
        os.set_inheritable(held, True)
        code = f"from multiprocessing.resource_tracker import main;main({held})"
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
        self.children[pid] = "tracker"
        os.close(held)
        self._tracked = tracked

    def wait_ready(self) -> None:
        """Until every rank is ready. Raises SchedulerDied."""
        for rank in range(len(self._links)):
            self._hear(rank)
        began = time.monotonic()
        for link in self._links:
            link.send({"go": began})
        ready = [self._hear(rank) for rank in range(len(self._links))]
        self.info = ready[0]["ready"]
        ranks = [pid for pid, name in self.children.items() if name.startswith("scheduler")]
        for link in self._links:
            link.send({"peers": ranks})
        threading.Thread(target=self._read_text, daemon=True).start()
        threading.Thread(target=self._read_control, daemon=True).start()
        if self.launch.version >= (0, 5, 10):
            threading.Thread(target=self._watch_children, daemon=True).start()

    def _hear(self, rank: int) -> Message:
        try:
            message = self._links[rank].receive()
        except EOFError as error:
            raise SchedulerDied(self._death(rank)) from error
        return message or {}

    def _death(self, rank: int) -> str:
        pid = next(pid for pid, name in self.children.items() if name == f"scheduler_{rank}")
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if self.launch.version < (0, 5, 10):
            log.say(f"Rank {rank} scheduler is dead. Please check if there are relevant logs.")
            log.say(f"Exit code: {code}")
            return "EOFError"
        return DIED.format(rank=rank, code=code)

    def _read_text(self) -> None:
        while self._text is not None:
            try:
                message = self._text.receive()
            except EOFError:
                return
            if message is not None:
                self.last_heard = time.monotonic()
                if found := self._answers.get(message["rid"]):
                    found.put(message)

    def _read_control(self) -> None:
        while True:
            try:
                message = self._links[0].receive()
            except EOFError:
                return
            if message is None:
                continue
            if "stats" in message:
                self.stats = message["stats"]
            elif "do" in message:
                os.kill(self._detokenizer if "detokenizer" in message["do"] else os.getpid(), signal.SIGKILL)
            elif found := self._replies.get(message.get("reply", "")):
                found.put(message)

    def _watch_children(self) -> None:
        """As the real watchdog of subprocesses: once a second; one that ended badly brings all down."""
        while not self.frozen.wait(settings.waited(1)):
            for pid, name in list(self.children.items()):
                with contextlib.suppress(ChildProcessError):
                    done, status = os.waitpid(pid, os.WNOHANG)
                    if done and (code := os.waitstatus_to_exitcode(status)) and name != "tracker":
                        log.say(
                            f"Subprocess {name} (pid={pid}) crashed with exit code {code}. "
                            "Triggering SIGQUIT for cleanup..."
                        )
                        os.kill(os.getpid(), signal.SIGQUIT)
                        return

    def ask(self, question: str, timeout_s: float | None = None) -> Message | None:
        """A question ("state" or "flush") to rank 0, which hangs when that one does."""
        name, inbox = self._next(), queue.SimpleQueue[Message]()
        self._replies[name] = inbox
        self.tell({question: name})
        with contextlib.suppress(queue.Empty):
            return inbox.get(timeout=timeout_s)
        return None

    def tell(self, message: Message) -> None:
        """Send something to rank 0."""
        with self._send_lock:
            self._links[0].send(message)

    def generate(
        self, rid: str, prompt: list[int], max_new_tokens: int, *, counted: bool
    ) -> queue.SimpleQueue[Message]:
        """Send a request; what comes of it arrives in the queue."""
        inbox = self._answers[rid] = queue.SimpleQueue[Message]()
        request = {"rid": rid, "prompt": prompt, "max_new_tokens": max_new_tokens, "counted": counted}
        self.tell({"generate": request})
        return inbox

    def forget(self, rid: str) -> None:
        """Nobody waits for this request any more."""
        if self._answers.pop(rid, None) is not None:
            self.tell({"abort": rid})

    @property
    def open_requests(self) -> list[str]:
        """Requests of clients that have no complete answer yet."""
        return [rid for rid in self._answers if not rid.startswith("HEALTH")]

    def _next(self) -> str:
        self._counter += 1
        return f"{self._counter}"

    def schedulers_alive(self) -> bool:
        """Whether any rank still runs."""
        for pid, name in self.children.items():
            if name.startswith("scheduler"):
                with contextlib.suppress(ChildProcessError):
                    if os.waitpid(pid, os.WNOHANG)[0] == 0:
                        return True
        return False

    def end_ranks(self) -> None:
        """Ask all ranks to end, and wait for that (15 s, as the real one)."""
        for link in self._links:
            link.send({"shutdown": True})
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline and self.schedulers_alive():
            time.sleep(0.02)

    def kill_children(self) -> None:
        """SIGKILL to all children that are left."""
        for pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_tree(self) -> NoReturn:
        """SIGKILL to all children and to this process: the normal way out of the real one."""
        self.say_killing(with_parent=True)
        self.kill_children()
        os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit(1)

    def say_killing(self, *, with_parent: bool) -> None:
        """The line in front of it."""
        if self.launch.version >= (0, 5, 15):
            me = os.getpid()
            log.say(f"kill_process_tree called: parent_pid={me}, include_parent={with_parent}, pid={me}")
