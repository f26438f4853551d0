"""A small HTTP server between the tracker and a real MLflow server, that can be made to misbehave."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PASS, FAIL, HANG, LOSE, NONSENSE = "pass", "fail", "hang", "lose the answer", "nonsense"
TRICKLE = "answer byte by byte"


class Gateway:
    """Forwards to `target`. `behave` says how; `calls` lists what arrived, as `POST /api/...`.

    LOSE: the request is carried out, but its answer never arrives. `only`: the behaviour is for paths that end so.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.behave = PASS
        self.only = ""
        self.nonsense = b"{}"
        self.calls: list[str] = []
        self.released = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                gateway.answer(self)

            def do_POST(self) -> None:
                gateway.answer(self)

            def do_PUT(self) -> None:
                gateway.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        return Handler

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = urlsplit(request.path).path
        self.calls.append(f"{request.command} {path}")
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        behave = self.behave if path.endswith(self.only) else PASS
        if behave == HANG:
            self.released.wait()
        elif behave == TRICKLE:
            trickle(request, self.released)
        elif behave == FAIL:
            reply(request, 500, b"Internal Server Error")
        elif behave == NONSENSE:
            reply(request, 200, self.nonsense)
        else:
            status, content = self.forward(request, body)
            if behave == PASS:
                reply(request, status, content)

    def forward(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.target).netloc, timeout=60)
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        connection.request(request.command, request.path, body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content

    def num_calls(self, ending: str) -> int:
        return sum(call.endswith(ending) for call in self.calls)


def reply(request: BaseHTTPRequestHandler, status: int, content: bytes) -> None:
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)


def trickle(request: BaseHTTPRequestHandler, released: threading.Event) -> None:
    """An answer that comes byte by byte, as over a link that is nearly dead."""
    request.send_response(200)
    request.send_header("Content-Length", "100000")
    request.end_headers()
    with suppress(OSError):
        while not released.wait(0.1):
            request.wfile.write(b" ")


@contextmanager
def gateway_to(target: str) -> Iterator[Gateway]:
    """A running gateway; gone, with all its waiting requests, when the context ends."""
    gateway = Gateway(target)
    thread = threading.Thread(target=gateway.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield gateway
    finally:
        gateway.released.set()
        gateway.server.shutdown()
        thread.join()
        gateway.server.server_close()
