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


class ExchangeError(Exception):
    """No usable answer came. `lines`: the last of what did come, bounded."""

    def __init__(self, message: str, lines: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class ExchangeTimeout(ExchangeError):
    """The whole exchange took longer than it may."""


def get_page(url: str, timeout_s: float) -> bytes:
    """The body of a page that answers 200, at most 4 MiB. Raises ExchangeError."""
    with _exchange("GET", url, None, _Wire(timeout_s)) as chunks:
        return b"".join(_limited(chunks, MAX_PAGE_BYTES))


def answers(url: str, timeout_s: float) -> bool:
    """Whether the page answers 200 now."""
    try:
        get_page(url, timeout_s)
    except ExchangeError:
        return False
    return True


def get_json(url: str, timeout_s: float) -> Mapping[str, Any]:
    """The JSON object that a page answers. Raises ExchangeError, also when it is something else."""
    page = get_page(url, timeout_s)
    try:
        value = json.loads(page)
    except (ValueError, RecursionError) as error:
        raise ExchangeError(f"GET {url}: not JSON: {page[:_SHOWN]!r}") from error
    if not isinstance(value, dict):
        raise ExchangeError(f"GET {url}: not a JSON object: {page[:_SHOWN]!r}")
    return value


def send(base_url: str, request: HttpRequest, timeout_s: float, clock: Clock) -> StreamedResponse:
    """Send a request and keep each line of the answer with its time of arrival. Raises ExchangeError.

    Times count from the moment the connection stands, just before the request is written to it.
    """
    began_s = [clock.monotonic_s()]
    wire = _Wire(timeout_s, lambda: began_s.append(clock.monotonic_s()))
    lines: list[tuple[float, bytes]] = []
    rest = b""
    try:
        with _exchange(request.method, base_url + request.path, request.json, wire) as chunks:
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
    """The socket of one exchange, shut down when the exchange has taken `timeout_s`, however busy it is."""

    def __init__(self, timeout_s: float, on_connected: Callable[[], None] = lambda: None) -> None:
        self.timeout_s = timeout_s
        self.expired = threading.Event()
        self._on_connected = on_connected
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(timeout_s, self._expire)
        self._timer.daemon = True

    def connected(self, connection: socket.socket) -> None:
        """The connection stands: watch its socket from now on."""
        self._socket = connection
        if self.expired.is_set():
            self._expire()
        self._on_connected()

    def _expire(self) -> None:
        self.expired.set()
        if self._socket is not None:
            with suppress(OSError):  # it may be closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Keep the time while open. Raises ExchangeTimeout at its end if the time had run out."""
        self._timer.start()
        try:
            yield
        except (requests.Timeout, TimeoutError, UrllibTimeout) as error:
            raise self._timeout() from error
        except (requests.RequestException, HTTPError, OSError) as error:
            if self.expired.is_set():
                raise self._timeout() from error
            raise ExchangeError(f"{type(error).__name__}: {str(error)[:_SHOWN]}") from error
        finally:
            self._timer.cancel()
        if self.expired.is_set():  # a socket that was shut down can also look like a proper end
            raise self._timeout()

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
                yield _chunks(response)
    except ExchangeError as error:
        raise type(error)(f"{method} {url}: {error}", error.lines) from error


def _chunks(response: requests.Response) -> Iterator[bytes]:
    """The body as it arrives: whatever one read of the socket gives, not before and not after."""
    while chunk := response.raw.read1(_CHUNK_BYTES):
        yield chunk


def _limited(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    """The same chunks. Raises ExchangeError when they are more than `max_bytes` in all."""
    num_bytes = 0
    for chunk in chunks:
        num_bytes += len(chunk)
        if num_bytes > max_bytes:
            raise ExchangeError(f"the answer is longer than {max_bytes} bytes")
        yield chunk
