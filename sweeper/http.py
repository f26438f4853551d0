"""HTTP to the server under test: bounded in time and size, one connection per exchange, no proxies, no redirects.

A server that may hang or talk nonsense must not hold a sweep. requests limits the time between two bytes only,
so a deadline of our own shuts the socket down when the whole exchange has taken too long.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import requests
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as UrllibTimeout

from launchers.clock import Clock
from sweeper.engines.base import HttpRequest, StreamedResponse

MAX_PAGE_BYTES = 4 * 1024 * 1024
MAX_STREAM_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 1024 * 1024
_CONNECT_TIMEOUT_S = 10.0
_CHUNK_BYTES = 65536
_SHOWN = 300
_SILENCE_S = 1.0


def _no_trouble() -> str:
    return ""


def _not_mended() -> bool:
    return False


@dataclass(frozen=True)
class Target:
    """Where requests go, and whom to ask when no answer comes.

    `trouble` is asked, in a thread of its own, once a second while an answer is silent: it says why there will
    never be one, or nothing. `mended` is asked after a failure: whether only the way there broke and stands again.
    """

    url: str
    trouble: Callable[[], str] = _no_trouble
    mended: Callable[[], bool] = _not_mended


class ExchangeError(Exception):
    """No usable answer came. `lines`: the last of what did come, bounded."""

    def __init__(self, message: str, lines: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class ExchangeTimeout(ExchangeError):
    """The whole exchange took longer than it may."""


def get_page(target: Target, path: str, timeout_s: float) -> bytes:
    """The body of a page that answers 200, at most 4 MiB. Raises ExchangeError."""
    with _exchange("GET", target.url + path, None, _Wire(timeout_s, target.trouble)) as chunks:
        return b"".join(_limited(chunks, MAX_PAGE_BYTES))


def answers(target: Target, path: str, timeout_s: float) -> bool:
    """Whether the page answers 200 now."""
    try:
        get_page(target, path, timeout_s)
    except ExchangeError:
        return False
    return True


def get_json(target: Target, path: str, timeout_s: float) -> Mapping[str, Any]:
    """The JSON object that a page answers. Raises ExchangeError, also when it is something else."""
    page = get_page(target, path, timeout_s)
    try:
        value = json.loads(page)
    except (ValueError, RecursionError) as error:
        raise ExchangeError(f"GET {target.url}{path}: not JSON: {page[:_SHOWN]!r}") from error
    if not isinstance(value, dict):
        raise ExchangeError(f"GET {target.url}{path}: not a JSON object: {page[:_SHOWN]!r}")
    return value


def send(target: Target, request: HttpRequest, timeout_s: float, clock: Clock) -> StreamedResponse:
    """Send a request and keep each line of the answer with its time of arrival. Raises ExchangeError.

    Times count from the moment the connection stands, just before the request is written to it.
    """
    began_s = [clock.monotonic_s()]
    wire = _Wire(timeout_s, target.trouble, lambda: began_s.append(clock.monotonic_s()))
    lines: list[tuple[float, bytes]] = []
    rest = b""
    try:
        with _exchange(request.method, target.url + request.path, request.json, wire) as chunks:
            for chunk in _limited(chunks, MAX_STREAM_BYTES):
                at_ms = (clock.monotonic_s() - began_s[-1]) * 1000
                *complete, rest = (rest + chunk).split(b"\n")
                lines += ((at_ms, line) for line in complete)
                if len(rest) > MAX_LINE_BYTES:
                    raise ExchangeError(
                        f"a line of the answer is longer than {MAX_LINE_BYTES} bytes", (_shown(rest),)
                    )
            e2e_latency_ms = (clock.monotonic_s() - began_s[-1]) * 1000
    except ExchangeError as error:
        last = tuple(_shown(line) for _, line in lines[-5:])
        raise type(error)(f"{error} ({len(lines)} lines had arrived)", error.lines or last) from error
    if rest:
        lines.append((e2e_latency_ms, rest))
    return StreamedResponse(tuple(lines), e2e_latency_ms)


def _shown(line: bytes) -> str:
    return line[:_SHOWN].decode("utf-8", "backslashreplace")[:_SHOWN]


class _Wire:
    """The socket of one exchange, shut down when the exchange has taken `timeout_s`, however busy it is.

    Also when it is silent and `trouble` says why it will stay so.
    """

    def __init__(
        self,
        timeout_s: float,
        trouble: Callable[[], str] = _no_trouble,
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
        listener = threading.Thread(target=self._listen, daemon=True) if self._trouble is not _no_trouble else None
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
            raise ExchangeError(self.reason or f"{type(error).__name__}: {str(error)[:_SHOWN]}") from error
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


def _session(wire: _Wire) -> requests.Session:
    """A session that speaks over `wire`; nothing of the environment (proxies, netrc) reaches it."""

    class Connection(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            wire.connected(self.sock)

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    session = requests.Session()
    session.trust_env = False
    session.headers.update({"Accept-Encoding": "identity", "Connection": "close"})
    adapter = requests.adapters.HTTPAdapter(max_retries=0)
    adapter.poolmanager.pool_classes_by_scheme = {"http": Pool}
    session.mount("http://", adapter)
    return session


@contextmanager
def _exchange(method: str, url: str, body: Mapping[str, Any] | None, wire: _Wire) -> Iterator[Iterator[bytes]]:
    """One request; the chunks of its answer as they arrive. Raises ExchangeError unless it answers 200 in time."""
    limits = (min(_CONNECT_TIMEOUT_S, wire.timeout_s), wire.timeout_s)
    try:
        with _session(wire) as session, wire.watched():
            response = session.request(method, url, json=body, stream=True, timeout=limits, allow_redirects=False)
            with response:
                if response.status_code != 200:
                    text = _shown(response.raw.read1(_SHOWN))
                    raise ExchangeError(f"status {response.status_code}: {text!r}", (text,))
                yield _chunks(response, wire)
    except ExchangeError as error:
        raise type(error)(f"{method} {url}: {error}", error.lines) from error


def _chunks(response: requests.Response, wire: _Wire) -> Iterator[bytes]:
    """The body as it arrives: whatever one read of the socket gives, not before and not after."""
    while chunk := response.raw.read1(_CHUNK_BYTES):
        wire.heard()
        yield chunk


def _limited(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    """The same chunks. Raises ExchangeError when they are more than `max_bytes` in all."""
    num_bytes = 0
    for chunk in chunks:
        num_bytes += len(chunk)
        if num_bytes > max_bytes:
            raise ExchangeError(f"the answer is longer than {max_bytes} bytes")
        yield chunk
