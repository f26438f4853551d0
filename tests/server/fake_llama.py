"""A stand-in for a llama.cpp server: real HTTP on a real port, answers that a test chooses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Handler"], None]
NONCE = "nonce-1"
MODEL = "/models/target.gguf"


class Handler(BaseHTTPRequestHandler):
    """Answers from the server's table of paths; an unknown path is a 404."""

    protocol_version = "HTTP/1.1"
    server: FakeLlama

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append(json.loads(body))
        self._answer()

    def _answer(self) -> None:
        self.server.paths.append(self.path)
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has had enough
            self.server.answers.get(self.path, status(404))(self)

    def begin(self, code: int = 200, length: int | None = None) -> None:
        """Status line and headers; without a length the body ends with the connection."""
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()

    def write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


class FakeLlama(ThreadingHTTPServer):
    """`answers` maps a path to what happens there. `over` is set when the test is: slow answers wait on it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.over = threading.Event()
        self.paths: list[str] = []
        self.posts: list[dict[str, object]] = []
        self.answers: dict[str, Answer] = {
            "/health": page({"status": "ok"}),
            "/props": page({"model_alias": NONCE, "model_path": MODEL, "total_slots": 1}),
            "/metrics": counting(),
            "/v1/chat/completions": chat("hello", " world"),
        }

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def fake_llama() -> Iterator[FakeLlama]:
    """A running one; gone when the context closes."""
    with FakeLlama() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join(timeout=5)


# Answers.


def raw(body: bytes, code: int = 200) -> Answer:
    def answer(handler: Handler) -> None:
        handler.begin(code, len(body))
        handler.write(body)

    return answer


def page(value: object) -> Answer:
    return raw(json.dumps(value).encode())


def status(code: int, text: str = "no") -> Answer:
    return raw(text.encode(), code)


def redirect(path: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(307)
        handler.send_header("Location", path)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def in_turn(*answers: Answer) -> Answer:
    """One answer after another; the last one stays."""
    left = list(answers)

    def answer(handler: Handler) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(handler)

    return answer


def event(**chunk: object) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def sse(*pieces: str, drafted: int = 0, accepted: int = 0, num_tokens: int | None = None) -> bytes:
    """The body of a proper answer, one token a piece unless said otherwise."""
    drafts = {"draft_n": drafted, "draft_n_accepted": accepted} if drafted else {}
    return b"".join(
        [
            event(choices=[{"delta": {"role": "assistant", "content": None}, "finish_reason": None}]),
            *(event(choices=[{"delta": {"content": text}, "finish_reason": None}]) for text in pieces),
            event(choices=[{"delta": {}, "finish_reason": "stop"}]),
            event(
                choices=[],
                usage={"completion_tokens": len(pieces) if num_tokens is None else num_tokens, "prompt_tokens": 9},
                timings={"predicted_ms": 5.0, **drafts},
            ),
            b"data: [DONE]\n\n",
        ]
    )


def chat(*pieces: str, drafted: int = 0, accepted: int = 0) -> Answer:
    return raw(sse(*pieces, drafted=drafted, accepted=accepted))


def chunked(*parts: bytes) -> Answer:
    """The same bytes in HTTP chunks, as llama.cpp sends them."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in (*parts, b""):
            handler.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")

    return answer


def cut_off(body: bytes) -> Answer:
    """Promises more than it sends."""

    def answer(handler: Handler) -> None:
        handler.begin(length=len(body) + 100)
        handler.write(body)

    return answer


def trickle(handler: Handler) -> None:
    """A byte now and then, for ever: every single read succeeds."""
    handler.begin()
    while not handler.server.over.wait(0.02):
        handler.write(b":")


def trickle_headers(handler: Handler) -> None:
    """The same before the headers end."""
    handler.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.server.over.wait(0.02):
        handler.write(b"x")


def hang(handler: Handler) -> None:
    """Takes the request and never answers."""
    handler.server.over.wait(30)


def drop(handler: Handler) -> None:
    """Closes the connection without a word."""


def endless(block: bytes) -> Answer:
    """Sends the same bytes without end, as fast as it can."""

    def answer(handler: Handler) -> None:
        handler.begin()
        while not handler.server.over.is_set():
            handler.write(block)

    return answer


def counting(num_drafts: int = 2, num_drafted: int = 8, num_accepted: int = 5) -> Answer:
    """A metrics page on which every reading has grown by these numbers."""
    readings = iter(range(10_000))

    def answer(handler: Handler) -> None:
        n = next(readings)
        name = "llamacpp:spec_decode_num"
        lines = [
            f"{name}_drafts_total {n * num_drafts}",
            f"{name}_draft_tokens_total {n * num_drafted}",
            f"{name}_accepted_tokens_total {n * num_accepted}",
            f'{name}_accepted_tokens_per_pos_total{{position="0"}} {n * num_drafts}',
            f'{name}_accepted_tokens_per_pos_total{{position="1"}} {n}',
        ]
        raw("".join(f"{line}\n" for line in lines).encode())(handler)

    return answer
