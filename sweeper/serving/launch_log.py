"""A server's log as far as it was read, bounded: untrusted bytes of any length and encoding."""

from __future__ import annotations

from dataclasses import dataclass

from launchers.base import Launcher, ServerHandle

HEAD_BYTES = 128 * 1024
TAIL_BYTES = 384 * 1024
"""What is kept of a longer log: its beginning (the configuration) and its end (the failure)."""

_CHUNK_BYTES = 1_000_000
_MAX_CHUNKS = 16  # per reading: a server that floods its log is not waited for
_EVIDENCE_LINES = 20
_EVIDENCE_CHARS = 300


@dataclass
class LaunchLog:
    """The first HEAD_BYTES and the last TAIL_BYTES of a log that is read piece by piece."""

    num_read: int = 0
    head: bytes = b""
    tail: bytes = b""

    def read_on(self, launcher: Launcher, handle: ServerHandle) -> None:
        """Read what is new. Raises HostLost."""
        for _ in range(_MAX_CHUNKS):
            chunk = launcher.logs(handle, self.num_read, _CHUNK_BYTES)
            self.append(chunk)
            if len(chunk) < _CHUNK_BYTES:
                break

    def append(self, chunk: bytes) -> None:
        """Add what follows."""
        self.num_read += len(chunk)
        missing = HEAD_BYTES - len(self.head)
        self.head += chunk[:missing]
        self.tail = (self.tail + chunk[missing:])[-TAIL_BYTES:]

    def content(self) -> bytes:
        """What is kept, with a line where something is missing."""
        num_lost = self.num_read - len(self.head) - len(self.tail)
        gap = f"\n... {num_lost} bytes left out ...\n".encode() if num_lost else b""
        return self.head + gap + self.tail

    def text(self) -> str:
        """What is kept, as text; undecodable bytes are shown as escapes."""
        return self.content().decode("utf-8", "backslashreplace")

    def last_lines(self) -> tuple[str, ...]:
        """The end of the log as evidence: at most 20 lines of at most 300 characters."""
        lines = [line for line in self.text().splitlines() if line.strip()]
        return tuple(line[:_EVIDENCE_CHARS] for line in lines[-_EVIDENCE_LINES:])
