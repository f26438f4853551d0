"""HTTP to the server under test (and to whoever is notified): bounded in time and size, no proxies, no redirects.

A server that may hang or talk nonsense must not hold a sweep. requests limits the time between two bytes only,
so a deadline of our own shuts the socket down when the whole exchange has taken too long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

from launchers.clock import Clock
from sweeper.engines.base import HttpRequest, StreamedResponse
from sweeper.wire import SHOWN, ExchangeError, ExchangeTimeout, Wire, no_trouble, session_over, shown

__all__ = ["ExchangeError", "ExchangeTimeout", "Target", "answers", "get_json", "get_page", "post", "send"]

MAX_PAGE_BYTES = 4 * 1024 * 1024
MAX_STREAM_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 1024 * 1024
_CONNECT_TIMEOUT_S = 10.0
_CHUNK_BYTES = 65536


def _not_mended() -> bool:
    return False


@dataclass(frozen=True)
class Target:
    """Where requests go, and whom to ask when no answer comes.

    `trouble` is asked, in a thread of its own, once a second while an answer is silent: it says why there will
    never be one, or nothing. `mended` is asked after a failure: whether only the way there broke and stands again.
    """

    url: str
    trouble: Callable[[], str] = no_trouble
    mended: Callable[[], bool] = _not_mended


def get_page(target: Target, path: str, timeout_s: float) -> bytes:
    """The body of a page that answers 200, at most 4 MiB. Raises ExchangeError."""
    with _exchange("GET", target.url + path, None, Wire(timeout_s, target.trouble)) as chunks:
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
        raise ExchangeError(f"GET {target.url}{path}: not JSON: {page[:SHOWN]!r}") from error
    if not isinstance(value, dict):
        raise ExchangeError(f"GET {target.url}{path}: not a JSON object: {page[:SHOWN]!r}")
    return value


def send(target: Target, request: HttpRequest, timeout_s: float, clock: Clock) -> StreamedResponse:
    """Send a request and keep each line of the answer with its time of arrival. Raises ExchangeError.

    Times count from the moment the connection stands, just before the request is written to it.
    """
    began_s = [clock.monotonic_s()]
    wire = Wire(timeout_s, target.trouble, lambda: began_s.append(clock.monotonic_s()))
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
                        f"a line of the answer is longer than {MAX_LINE_BYTES} bytes", (shown(rest),)
                    )
            e2e_latency_ms = (clock.monotonic_s() - began_s[-1]) * 1000
    except ExchangeError as error:
        last = tuple(shown(line) for _, line in lines[-5:])
        raise type(error)(f"{error} ({len(lines)} lines had arrived)", error.lines or last) from error
    if rest:
        lines.append((e2e_latency_ms, rest))
    return StreamedResponse(tuple(lines), e2e_latency_ms)


def post(url: str, body: Mapping[str, Any], timeout_s: float) -> int:
    """Post a JSON object to anybody's server; the status, whatever it is. Nothing of the answer is read.

    Raises ExchangeError, whose text may hold the URL, when no answer came in time.
    """
    wire = Wire(timeout_s)
    limits = (min(_CONNECT_TIMEOUT_S, timeout_s), timeout_s)
    with session_over(wire) as session, wire.watched():
        response = session.post(url, json=body, stream=True, timeout=limits, allow_redirects=False)
        with response:
            return int(response.status_code)


@contextmanager
def _exchange(method: str, url: str, body: Mapping[str, Any] | None, wire: Wire) -> Iterator[Iterator[bytes]]:
    """One request; the chunks of its answer as they arrive. Raises ExchangeError unless it answers 200 in time."""
    limits = (min(_CONNECT_TIMEOUT_S, wire.timeout_s), wire.timeout_s)
    try:
        with session_over(wire) as session, wire.watched():
            response = session.request(method, url, json=body, stream=True, timeout=limits, allow_redirects=False)
            with response:
                if response.status_code != 200:
                    text = shown(response.raw.read1(SHOWN))
                    raise ExchangeError(f"status {response.status_code}: {text!r}", (text,))
                yield _chunks(response, wire)
    except ExchangeError as error:
        raise type(error)(f"{method} {url}: {error}", error.lines) from error


def _chunks(response: requests.Response, wire: Wire) -> Iterator[bytes]:
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
