"""A proxy before PostgreSQL that resets the connection once for each text of a statement."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Self

STARTUP_CODES = (80877103, 80877104)  # SSLRequest, GSSENCRequest: one byte comes back, and the start-up follows


class StatementProxy:
    """`cut`: statements in which the connection was lost, `most` of them, while
    `is_armed`. `after`: only the answer is lost.
    """

    def __init__(self, port: int, *, after: bool, most: int = 1000) -> None:
        self.cut: set[bytes] = set()
        self.is_armed = True
        self._server_port, self._after, self._most = port, after, most
        self._guard = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), client:
            server = socket.create_connection(("127.0.0.1", self._server_port))
            with server:
                answering = threading.Event()
                answering.set()
                threading.Thread(target=_pump, args=(server, client, answering), daemon=True).start()
                _start(client, server)
                while True:
                    kind, body = _message(client)
                    lost = self._is_to_be_lost(kind, body)
                    if lost and self._after:
                        answering.clear()
                    if not lost or self._after:
                        server.sendall(kind + struct.pack("!I", len(body) + 4) + body)
                    if lost:
                        if self._after:
                            _finish(client, server)
                        _reset(client)
                        server.shutdown(socket.SHUT_RDWR)  # a close waits for the thread that reads
                        return

    def _is_to_be_lost(self, kind: bytes, body: bytes) -> bool:
        text = statement(kind, body)
        with self._guard:
            if not self.is_armed or not text or text in self.cut or len(self.cut) >= self._most:
                return False
            self.cut.add(text)
            return True


def statement(kind: bytes, body: bytes) -> bytes:
    """The text of a simple query or of a statement that is prepared; empty for all else."""
    if kind == b"Q":
        return body.partition(b"\0")[0]
    if kind == b"P":
        return body.split(b"\0", 2)[1]
    return b""


def _start(client: socket.socket, server: socket.socket) -> None:
    """Hand on what comes before the first message with a letter."""
    while True:
        length = _exactly(client, 4)
        body = _exactly(client, struct.unpack("!I", length)[0] - 4)
        server.sendall(length + body)
        if struct.unpack("!I", body[:4])[0] not in STARTUP_CODES:
            return


def _finish(client: socket.socket, server: socket.socket) -> None:
    """Let the rest of the statement reach the server, and the server do it."""
    client.settimeout(0.3)
    with contextlib.suppress(TimeoutError, EOFError):
        while True:
            kind, body = _message(client)
            server.sendall(kind + struct.pack("!I", len(body) + 4) + body)
    threading.Event().wait(0.2)


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    kind = _exactly(source, 1)
    return kind, _exactly(source, struct.unpack("!I", _exactly(source, 4))[0] - 4)


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        if not (more := source.recv(count - len(data))):
            raise EOFError
        data += more
    return data


def _pump(source: socket.socket, sink: socket.socket, wanted: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if wanted.is_set():
                sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def _reset(side: socket.socket) -> None:
    with contextlib.suppress(OSError):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    side.close()
