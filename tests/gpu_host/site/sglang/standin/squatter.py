"""Servers that only say they are well: of somebody else, on our port; and of the further nodes of a server."""

from __future__ import annotations

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = {"model_path": "/models/somebody-elses", "served_model_name": "somebody-elses", "version": "0.5.15.post1"}


class Healthy(BaseHTTPRequestHandler):
    """Well, and nothing else."""

    answer: bytes | None = None

    def do_GET(self) -> None:
        body = b"" if self.path.startswith("/health") else self.answer
        self.send_response(404 if body is None else 200)
        body = body or b""
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing: the log belongs to somebody else."""


class _Stranger(Healthy):
    """Answers everything."""

    answer = json.dumps(ANSWER).encode()


def serve(host: str, port: int, ready: int) -> None:
    """Listen, close `ready` to say so, answer until the alarm."""
    server = ThreadingHTTPServer((host, port), _Stranger)
    os.close(ready)
    server.serve_forever()
