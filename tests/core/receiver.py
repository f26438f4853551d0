"""A webhook's server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = "T0KEN-xyz-very-secret"


class Receiver(ThreadingHTTPServer):
    """Answers with the statuses it was given, in turn, then 200; `hold` keeps its answers back."""

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses = list(statuses)
        self.received: list[dict[str, str]] = []
        self.hold = threading.Event()
        self.hold.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hooks/{SECRET}"


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A server that listens while open; what it holds back then is answered in the end."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.hold.set()
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.hold.wait(20)
        self.server.received.append(json.loads(body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...
