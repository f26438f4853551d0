"""Ctrl-C, SIGTERM and SIGHUP: what a person or the system asked for, and the moments that must not be disturbed.

First Ctrl-C: the sweep ends after the current launch. Second: the launch is abandoned, its server stopped.
SIGUSR1, which `specsweep stop` sends, is as a first Ctrl-C, however often it comes.
SIGTERM and SIGHUP abandon at once; so does the alarm at the end of the night. Starting and stopping a server are
shielded: an interruption that arrives meanwhile takes effect right after.

Where no sweep is under way SIGTERM and SIGHUP end the command (`ends_heard`), with a line and the same exit code.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from sweeper.errors import ExitCode, NightOver, SweepInterrupted, Terminated

FIRST_PRESS = "Stopping once the current launch is finished. Press Ctrl-C again to abandon it now."
ASKED = "Asked to stop: the sweep ends once the current launch is finished."
SECOND_PRESS = "Abandoning the current launch; its trial will be measured again. Stopping the server ..."
NIGHT_OVER = "The night is over. Abandoning the current launch; its trial is measured again in the next one."

Handler = Callable[[int, FrameType | None], None]


class Interrupts:
    """Signal handlers while installed. `finish_requested` is read by the loop between launches.

    `say` tells the person; it may be replaced by a better one once there is a screen.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.finish_requested = False
        self.say = say
        self._shields = 0
        self._pending: SweepInterrupted | None = None
        self._raised = False
        self._can_alarm = False
        self._is_night_watched = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP while open; then as before."""
        handlers = {
            signal.SIGINT: self._on_interrupt,
            signal.SIGUSR1: self._on_request,
            signal.SIGTERM: self._on_terminate,
            signal.SIGHUP: self._on_terminate,
            signal.SIGALRM: self._on_alarm,
        }
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            del handlers[signal.SIGHUP]  # nohup asked for exactly that
        former = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        self._can_alarm = True
        try:
            yield
        finally:
            self._can_alarm = False
            for number, handler in former.items():
                signal.signal(number, handler)

    @contextmanager
    def saying(self, say: Callable[[str], None]) -> Iterator[None]:
        """While open, `say` tells the person; then who did before."""
        former, self.say = self.say, say
        try:
            yield
        finally:
            self.say = former

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Hold interruptions back while open. Raises SweepInterrupted at its end if one arrived."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        self._raise_pending()

    @contextmanager
    def night_ends_in(self, seconds: float | None) -> Iterator[None]:
        """While open: raise NightOver after so many seconds (None: never), once no shield is up.

        Only while the handlers are installed, in the main thread. A time that is past raises at once.
        """
        if seconds is None or not self._can_alarm:
            yield
            return
        self._is_night_watched = True
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
        try:
            yield
        except NightOver:
            self._raised = False
            if isinstance(self._pending, NightOver):
                self._pending = None
            self._raise_pending()  # a person, or the system, may have asked for more meanwhile
            raise
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._is_night_watched = False

    @property
    def is_abandoning(self) -> bool:
        """Whether a person or the system wants the end now: nothing that is away is waited for any more."""
        return self._pending is not None and not isinstance(self._pending, NightOver)

    def _notice(self, text: str) -> None:
        """Say it from a thread: a handler that interrupts a half-done write must not write to the same stream."""
        threading.Thread(target=self.say, args=(text,), daemon=True).start()

    def _on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if not self.finish_requested:
            self.finish_requested = True
            self._notice(FIRST_PRESS)
            return
        self._interrupt(SweepInterrupted(ExitCode.INTERRUPTED))

    def _on_request(self, _number: int, _frame: FrameType | None) -> None:
        self.ask_to_finish()

    def ask_to_finish(self) -> None:
        """The sweep ends after the current launch; said once."""
        if not self.finish_requested:
            self.finish_requested = True
            self._notice(ASKED)

    def _on_terminate(self, _number: int, _frame: FrameType | None) -> None:
        self.finish_requested = True
        self._interrupt(SweepInterrupted(ExitCode.TERMINATED))

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        """Only the timer's own: while it still runs, or was never set, somebody else has sent the signal."""
        if not self._is_night_watched or signal.getitimer(signal.ITIMER_REAL)[0] > 0:
            return
        if self._pending is None and not self._raised:
            self._pending = NightOver()
            self._notice(NIGHT_OVER)
        self._raise_pending()

    def _interrupt(self, interruption: SweepInterrupted) -> None:
        if self._pending is None or isinstance(self._pending, NightOver):
            self._pending = interruption
            self._notice(SECOND_PRESS)
        self._raise_pending()

    def _raise_pending(self) -> None:
        if self._pending is not None and self._shields == 0 and not self._raised:
            self._raised = True
            raise self._pending


@contextmanager
def ends_heard() -> Iterator[None]:
    """While open, SIGTERM and (unless it is ignored: nohup) SIGHUP raise Terminated. Of the main thread alone."""
    with _ends_handled(_raise_terminated):
        yield


@contextmanager
def ends_at_once() -> Iterator[None]:
    """While open they end the process with a line: for the loading of modules, which may lose what is raised.

    Nothing has been begun then, so nothing is left.
    """
    with _ends_handled(_leave):
        yield


@contextmanager
def _ends_handled(handler: Handler) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    former = {number: signal.signal(number, handler) for number in ends}
    try:
        yield
    finally:
        for number, before in former.items():
            signal.signal(number, before)


def _raise_terminated(number: int, _frame: FrameType | None) -> None:
    raise Terminated(signal.Signals(number).name)


def _leave(number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"specsweep: ended by {signal.Signals(number).name} before anything was begun\n".encode())
    os._exit(ExitCode.TERMINATED)


def ask_this_process(*, now: bool) -> None:
    """From any thread: end this sweep after its launch, or abandon that; only while the handlers are installed."""
    main = threading.main_thread().ident
    number = signal.SIGTERM if now else signal.SIGUSR1
    if main is not None and callable(signal.getsignal(number)):
        signal.pthread_kill(main, number)
