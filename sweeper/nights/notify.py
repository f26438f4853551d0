"""Tells somebody that a night has an event: by a command, or by a webhook. It never holds a sweep up nor fails it.

The command and the webhook are told from a thread each, in order: one that hangs does not silence the other. What
cannot be sent is said in the sweep's log. Neither the URL nor anything that the other side answers is ever shown:
both may hold secrets.
"""

from __future__ import annotations

import datetime
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from launchers.clock import Clock, SystemClock
from launchers.shell import run_program
from sweeper.endings import ending_of
from sweeper.errors import AlreadyAtWork, ConfigError, ExitCode, SweepInterrupted
from sweeper.http import ExchangeError, ExchangeTimeout, post
from sweeper.known_secrets import KNOWN
from sweeper.spec import NotifySpec
from sweeper.text import plain

BACKOFF_S = 2.0
"""Before the second try; four times as long before each further one."""

ENDS = ("finished", "interrupted", "aborted")
"""The events of which a start has one at most."""

MAX_TEXT = 4000
_KILL_S = 1.0
"""So long is waited for a command that is killed because specsweep ends."""


@dataclass(frozen=True)
class Message:
    """What is told: the event's name, the study's, the host's, a text of a few lines, and when (UTC, ISO 8601)."""

    event: str
    study: str
    host: str
    text: str
    at: str


class Notifier:
    """Sends messages while its context is open; leaving it waits for the last ones, `patience_s` seconds at most.

    `say` is told what could not be sent, from the thread that tried.
    """

    def __init__(
        self, spec: NotifySpec, clock: Clock, say: Callable[[str], None], patience_s: float = 30.0
    ) -> None:
        self._spec = spec
        self._clock = clock
        self._say = say
        self._patience_s = patience_s
        self._url = webhook_url(spec, os.environ)
        self._closing = threading.Event()
        self._is_end_told = False
        self._untold = set[Message]()
        self._afterwards: list[tuple[Message, Callable[[], None]]] = []
        ways = {"command": self._run} if spec.command else {}
        ways |= {"webhook": self._post} if self._url else {}
        self._queues = {name: queue.SimpleQueue[Message | None]() for name in ways}
        self._threads = [
            threading.Thread(target=self._work, args=(name, send), name=f"notify {name}", daemon=True)
            for name, send in ways.items()
        ]

    def __enter__(self) -> Notifier:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for messages in self._queues.values():
            messages.put(None)
        until_s = self._clock.monotonic_s() + self._patience_s
        for thread in self._threads:
            thread.join(max(0.0, until_s - self._clock.monotonic_s()))
        self._closing.set()
        if any(thread.is_alive() for thread in self._threads):
            self._say("notify: specsweep ends while a message is still being sent")
            for thread in self._threads:
                thread.join(_KILL_S)
            return
        for message, afterwards in self._afterwards:
            if message not in self._untold:
                afterwards()

    def tell(
        self, event: str, study: str, host: str, text: str, afterwards: Callable[[], None] | None = None
    ) -> None:
        """Queue a message, if its event is asked for; returns at once.

        `afterwards` is called when the context is left, if somebody was told by then, and by every way.
        """
        if event not in self._spec.events:
            return
        self._is_end_told |= event in ENDS
        lines = (plain(line, 500) for line in KNOWN.hide(text)[: 2 * MAX_TEXT].splitlines())
        at = self._clock.now().replace(microsecond=0)
        message = Message(event, study, host, "\n".join(lines)[:MAX_TEXT], _iso(at))
        for messages in self._queues.values():
            messages.put(message)
        if afterwards is not None and self._queues:
            self._afterwards.append((message, afterwards))

    @contextmanager
    def ending(self, study: str, host: str) -> Iterator[None]:
        """While open: an end that is no good one, whatever it is raised by, is told, and passes on.

        Not if an end was told already, nor where another process works on the study, which tells its own.
        """
        with ExitStack() as whatever:
            whatever.push(lambda _kind, error, _trace: self._tell_end(study, host, error))
            yield

    def _tell_end(self, study: str, host: str, error: BaseException | None) -> None:
        if self._is_end_told or isinstance(error, AlreadyAtWork):
            return
        if isinstance(error, (SweepInterrupted, KeyboardInterrupt)):
            self.tell("interrupted", study, host, "interrupted; the same command goes on")
        elif isinstance(error, Exception):
            ending = ending_of(error)
            is_asked = ending.code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED)
            self.tell("interrupted" if is_asked else "aborted", study, host, ending.text)

    def _work(self, name: str, send: Callable[[Message], str]) -> None:
        while (message := self._queues[name].get()) is not None:
            problem = self._with_retries(send, message)
            if problem:
                self._untold.add(message)
            if problem and not self._closing.is_set():
                self._say(f"notify.{name}: {message.event} could not be told: {problem}")

    def _with_retries(self, send: Callable[[Message], str], message: Message) -> str:
        """Why it could not be sent, at the last of the tries; empty once it was."""
        wait_s, problem = BACKOFF_S, ""
        for number in range(self._spec.tries):
            if number:
                if self._closing.is_set():
                    break
                self._clock.sleep(wait_s)
                wait_s *= 4
            if not (problem := send(message)):
                return ""
        return problem

    def _run(self, message: Message) -> str:
        """Run the command: the text on its stdin, the rest in its environment."""
        env = {f"SPECSWEEP_{name.upper()}": value for name, value in asdict(message).items() if name != "text"}
        try:
            text = f"{message.text}\n".encode()
            result = run_program(self._spec.command, text, self._spec.timeout_s, env, self._closing.is_set)
        except (OSError, ValueError) as error:
            return f"{self._spec.command[0]} cannot be run: {type(error).__name__}"
        if result is None:
            return f"{self._spec.command[0]} did not end within {self._spec.timeout_s:g} s; it was killed"
        return f"{self._spec.command[0]} ended with exit code {result.exit_code}" if result.exit_code else ""

    def _post(self, message: Message) -> str:
        """Post it as JSON. `text` alone is what Slack, Mattermost and others show."""
        try:
            status = post(self._url, asdict(message), self._spec.timeout_s)
        except ExchangeTimeout:
            return f"no answer within {self._spec.timeout_s:g} s"
        except ExchangeError:
            return "it cannot be reached"
        return "" if 200 <= status < 300 else f"it answered with status {status}"


@contextmanager
def ends_told(spec: NotifySpec, study: str, host: str, say: Callable[[str], None]) -> Iterator[Notifier]:
    """While open: an end that is no good one is told; what it gives may be told more. Raises as `webhook_url`."""
    with Notifier(spec, SystemClock(), say) as notifier, notifier.ending(study, host):
        yield notifier


def webhook_url(spec: NotifySpec, environ: Mapping[str, str]) -> str:
    """The URL that the configuration or the environment gives; empty for none. Raises ConfigError, without it."""
    if not spec.webhook_env:
        return spec.webhook
    url = environ.get(spec.webhook_env, "")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or not url.isprintable():
        state = "holds no URL that begins with https:// or http://" if url else "is not set"
        raise ConfigError([f"notify.webhook_env: the environment variable {spec.webhook_env} {state}"])
    return url


def _iso(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).isoformat()
