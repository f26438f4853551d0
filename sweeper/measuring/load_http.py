"""One HTTP/1.1 request as bytes, and its answer as it arrives. Part of the client on the host (load_client.py)."""

from __future__ import annotations

HEAD_BYTES = 65536
SHOWN = 300


class Failed(Exception):
    """No usable answer to one request."""


class Body:
    """Takes an HTTP/1.1 answer as it arrives, and gives its body. Raises Failed for what is none."""

    def __init__(self) -> None:
        self.status = 0
        self.is_complete = False
        self._raw = b""
        self._is_chunked = False
        self._left: int | None = None  # of the chunk, or of the whole body; None: until the connection ends

    def feed(self, data: bytes) -> bytes:
        """What `data` adds to the body."""
        self._raw += data
        try:
            if not self.status and not self._take_head():
                return b""
            return self._chunks() if self._is_chunked else self._plain()
        except ValueError as error:
            raise Failed(f"the answer is not HTTP/1.1: {self._raw[:SHOWN]!r}") from error

    def end(self) -> None:
        """The connection has ended."""
        if self._left is not None or self._is_chunked or not self.status:
            raise Failed("the server closed the connection before the end of its answer")
        self.is_complete = True

    def _take_head(self) -> bool:
        head, found, rest = self._raw.partition(b"\r\n\r\n")
        if not found:
            if len(head) > HEAD_BYTES:
                raise ValueError
            return False
        first, *lines = head.lower().split(b"\r\n")
        fields = {name.strip(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        version, status, *_ = first.split()
        if not version.startswith(b"http/1."):
            raise ValueError
        self._is_chunked = fields.get(b"transfer-encoding", b"").endswith(b"chunked")
        length = fields.get(b"content-length")
        self._left = 0 if self._is_chunked else None if length is None else int(length)
        self.is_complete = self._left == 0 and not self._is_chunked
        self.status, self._raw = int(status), rest
        return True

    def _plain(self) -> bytes:
        body, self._raw = self._raw, b""
        if self._left is not None:
            self._left -= len(body)
            self.is_complete = self._left <= 0
        return body

    def _chunks(self) -> bytes:
        pieces = []
        while not self.is_complete and self._raw:
            if self._left:
                piece, self._raw = self._raw[: self._left], self._raw[self._left :]
                self._left -= len(piece)
                pieces.append(piece)
                continue
            size, found, rest = self._raw.partition(b"\r\n")
            if not found and len(size) < SHOWN:
                break
            self._raw = rest
            if size:  # empty: the line end of the chunk before
                self._left = int(size.partition(b";")[0], 16)
                self.is_complete = self._left == 0
                if self._left < 0:
                    raise ValueError
        return b"".join(pieces)


def head_and_body(address: list[object], method: str, path: str, body: str) -> bytes:
    """One HTTP request."""
    text = body.encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {address[0]}:{address[1]}",
        "Accept-Encoding: identity",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(text)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + text
