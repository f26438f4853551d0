"""One connection of one exchange: watched while it lasts, shut down when it takes too long or has no hope.

requests limits the time between two bytes only, so the whole exchange has a deadline of its own here.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import requests
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as UrllibTimeout

SHOWN = 300
_SILENCE_S = 1.0


class ExchangeError(Exception):
    """No usable answer came. `lines`: the last of what did come, bounded."""

    def __init__(self, message: str, lines: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class ExchangeTimeout(ExchangeError):
    """The whole exchange took longer than it may."""


def no_trouble() -> str:
    """Nothing is known that would make waiting useless."""
    return ""


def shown(line: bytes) -> str:
    """The beginning of a line, for a message."""
    return line[:SHOWN].decode("utf-8", "backslashreplace")[:SHOWN]


class Wire:
    """The socket of one exchange, shut down when the exchange has taken `timeout_s`, however busy it is.

    Also when it is silent and `trouble` says why it will stay so.
    """

    def __init__(
        self,
        timeout_s: float,
        trouble: Callable[[], str] = no_trouble,
        on_connected: Callable[[], None] = lambda: None,
    ) -> None:
        self.timeout_s = timeout_s
        self.expired = threading.Event()
        self.reason = ""
        self._trouble = trouble
        self._on_connected = on_connected
        self._socket: socket.socket | None = None
        self._ended = threading.Event()
        self._heard = threading.Event()
        self._timer = threading.Timer(timeout_s, self._expire)
        self._timer.daemon = True

    def connected(self, connection: socket.socket) -> None:
        """The connection stands: watch its socket from now on."""
        self._socket = connection
        if self.expired.is_set():
            self._shut_down()
        self._on_connected()

    def heard(self) -> None:
        """Something has arrived: the silence is over."""
        self._heard.set()

    def _expire(self) -> None:
        self.expired.set()
        self._shut_down()

    def _shut_down(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # it may be closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> None:
        while not self._ended.wait(_SILENCE_S):
            if self._heard.is_set():
                self._heard.clear()
            elif reason := self._trouble():
                self.reason = reason
                self._shut_down()
                return

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Keep the time while open. Raises ExchangeTimeout at its end if the time had run out."""
        listener = threading.Thread(target=self._listen, daemon=True) if self._trouble is not no_trouble else None
        self._timer.start()
        if listener:
            listener.start()
        try:
            yield
        except (requests.Timeout, TimeoutError, UrllibTimeout) as error:
            raise self._timeout() from error
        except (requests.RequestException, HTTPError, OSError) as error:
            if self.expired.is_set():
                raise self._timeout() from error
            raise ExchangeError(self.reason or f"{type(error).__name__}: {str(error)[:SHOWN]}") from error
        finally:
            self._timer.cancel()
            self._ended.set()
            if listener:
                listener.join()  # it may be asking the host: two threads must not read one log
        if self.expired.is_set():  # a socket that was shut down can also look like a proper end
            raise self._timeout()
        if self.reason:
            raise ExchangeError(self.reason)

    def _timeout(self) -> ExchangeTimeout:
        return ExchangeTimeout(f"no complete answer within {self.timeout_s:g} s")


def session_over(wire: Wire) -> requests.Session:
    """A session that speaks over `wire`; nothing of the environment (proxies, netrc) reaches it."""

    class Connection(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            wire.connected(self.sock)

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    class SecureConnection(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            wire.connected(self.sock)

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    session = requests.Session()
    session.trust_env = False
    session.headers.update({"Accept-Encoding": "identity", "Connection": "close"})
    adapter = requests.adapters.HTTPAdapter(max_retries=0)
    adapter.poolmanager.pool_classes_by_scheme = {"http": Pool, "https": SecurePool}
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session
