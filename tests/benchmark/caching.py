"""A stand-in server with a prefix cache and an n-gram pool, whose time is a fake clock's: its speed is exact.

The server winds the clock by what its work takes. It waits until the client has looked at the clock before it
works on, so that every time the client records is known exactly, however busy the machine is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile

from sweeper.engines.base import HttpRequest
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.http import Target
from sweeper.spec import ServerConfig
from tests.fakes import FakeClock
from tests.server import fake_llama as fake

CHAT = "/v1/chat/completions"
PREFILL_MS = 10.0
"""For each character of a prompt that no cache knows."""
STEP_MS = 100.0


class WatchedClock(FakeClock):
    """A fake clock that knows how often it has been looked at."""

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0
        self._looked = threading.Condition()

    def monotonic_s(self) -> float:
        with self._looked:
            self._looks += 1
            self._looked.notify_all()
            return super().monotonic_s()

    @contextmanager
    def seen(self) -> Iterator[None]:
        """Do something that makes the client look at the clock, and wait until it has."""
        with self._looked:
            before = self._looks
        yield
        with self._looked:
            assert self._looked.wait_for(lambda: self._looks > before, timeout=10)


class CacheAware(LlamaCpp):
    """Asks this server; `flushes` and `told` are what the engine knows to do, and knows to say, about caches."""

    def __init__(self, *, flushes: bool = True, told: str = "") -> None:
        self._flushes = flushes
        self._told = told

    def flush(self) -> HttpRequest | None:
        return HttpRequest("POST", "/flush", {}) if self._flushes else None

    def remembers(self, config: ServerConfig) -> str:
        return self._told


@dataclass
class Caching:
    """How the server answers. `speed(n)`: how fast its nth request is (from 0), over its ordinary speed.

    Every answer has `num_tokens` tokens. With the pool two of them come with each step once the server has written
    the same answer before: what it writes depends on the prompt's last word alone.
    """

    clock: WatchedClock = field(default_factory=WatchedClock)
    num_tokens: int = 8
    has_prefix_cache: bool = False
    has_pool: bool = False
    speed: Callable[[int], float] = lambda _: 1.0
    prompts: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    pool: set[str] = field(default_factory=set)

    def chat(self, handler: fake.Handler) -> None:
        """One answer, in its own time."""
        text = str(handler.server.posts[-1]["messages"])
        factor = self.speed(len(self.prompts))
        known = max((num_shared(text, other) for other in self.known), default=0)
        subject = text.split()[-1]
        per_step = 2 if subject in self.pool else 1
        self.prompts.append(text)
        if self.has_prefix_cache:
            self.known.append(text)
        if self.has_pool:
            self.pool.add(subject)
        handler.begin()
        self._work(PREFILL_MS * (len(text) - known) / factor)
        steps = [f"{subject} " * per_step for _ in range(self.num_tokens // per_step)]
        for step in steps:
            self._work(STEP_MS / factor)
            with self.clock.seen():
                handler.write(piece(step))
        drafted = self.num_tokens - len(steps)
        handler.write(fake.sse(drafted=drafted, accepted=drafted, num_tokens=self.num_tokens))

    def flush(self, handler: fake.Handler) -> None:
        """Forgets the prompts; the pool stays, as it does in real servers."""
        self.known.clear()
        fake.status(200, "flushed")(handler)

    @contextmanager
    def running(self) -> Iterator[Target]:
        """The server, on a real port."""
        with fake.fake_llama() as server:
            server.answers |= {CHAT: self.chat, "/flush": self.flush, "/metrics": fake.status(404)}
            yield Target(server.url)

    def _work(self, milliseconds: float) -> None:
        self.clock.sleep(milliseconds / 1000)


def piece(text: str) -> bytes:
    return fake.event(choices=[{"delta": {"content": text}, "finish_reason": None}])


def num_shared(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
