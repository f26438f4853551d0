"""Tells somebody that a night has an event: by a command, or by a webhook. It never holds a sweep up nor fails it.

Everything is sent from a thread of its own, in order. What cannot be sent is said in the sweep's log. Neither the
URL nor anything that the other side answers is ever shown: both may hold secrets.
"""

from __future__ import annotations

import datetime
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from launchers.clock import Clock
from launchers.errors import LauncherError
from launchers.shell import run_program
from sweeper.errors import ConfigError, SpecsweepError, SweepInterrupted
from sweeper.http import ExchangeError, ExchangeTimeout, post
from sweeper.spec import NotifySpec
from sweeper.storage import STORAGE_ERRORS
from sweeper.text import plain

BACKOFF_S = 2.0
"""Before the second try; four times as long before each further one."""

MAX_TEXT = 4000
ENDINGS = (SpecsweepError, LauncherError, OSError, *STORAGE_ERRORS)
"""What ends a sweep with a message for a person."""


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
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="notifications", daemon=True)
        self._closing = threading.Event()

    def __enter__(self) -> Notifier:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._messages.put(None)
        self._thread.join(self._patience_s)
        self._closing.set()
        if self._thread.is_alive():
            self._say("notify: specsweep ends while a message is still being sent")

    def tell(self, event: str, study: str, host: str, text: str) -> None:
        """Queue a message, if its event is asked for; returns at once."""
        if event not in self._spec.events or not (self._spec.command or self._url):
            return
        lines = (plain(line, 500) for line in text[: 2 * MAX_TEXT].splitlines())
        at = self._clock.now().replace(microsecond=0)
        self._messages.put(Message(event, study, host, "\n".join(lines)[:MAX_TEXT], _iso(at)))

    @contextmanager
    def ending(self, study: str, host: str) -> Iterator[None]:
        """While open: an end that is no good one is told, and passes on."""
        try:
            yield
        except SweepInterrupted:
            self.tell("interrupted", study, host, "interrupted; the same command goes on")
            raise
        except ENDINGS as error:
            self.tell("aborted", study, host, str(error))
            raise

    def _work(self) -> None:
        while (message := self._messages.get()) is not None:
            for name, send in (("command", self._run), ("webhook", self._post)):
                if (problem := self._with_retries(send, message)) and not self._closing.is_set():
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
        if not self._spec.command:
            return ""
        env = {f"SPECSWEEP_{name.upper()}": value for name, value in asdict(message).items() if name != "text"}
        try:
            result = run_program(self._spec.command, f"{message.text}\n".encode(), self._spec.timeout_s, env)
        except (OSError, ValueError) as error:
            return f"{self._spec.command[0]} cannot be run: {type(error).__name__}"
        if result is None:
            return f"{self._spec.command[0]} did not end within {self._spec.timeout_s:g} s; it was killed"
        return f"{self._spec.command[0]} ended with exit code {result.exit_code}" if result.exit_code else ""

    def _post(self, message: Message) -> str:
        """Post it as JSON. `text` alone is what Slack, Mattermost and others show."""
        if not self._url:
            return ""
        try:
            status = post(self._url, asdict(message), self._spec.timeout_s)
        except ExchangeTimeout:
            return f"no answer within {self._spec.timeout_s:g} s"
        except ExchangeError:
            return "it cannot be reached"
        return "" if 200 <= status < 300 else f"it answered with status {status}"


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
