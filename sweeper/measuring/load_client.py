"""Sends many requests at once to a server on the same host, and says what became of each.

host_load.py sends this file and the two that it imports as one text to the host, where any Python from 3.8 on runs
it (`python -I -S -c TEXT`) with nothing but the standard library. The job comes in environment variables, or in a
file that is removed at once; the answer is one line on stdout. It ends by itself when nobody reads that any more,
and at its deadline.

One thread and non-blocking sockets: with a thread per request, each piece of an answer waits for the interpreter
lock before its time is taken. At 64 streams of 150 tok/s on a busy machine, threads with http.client took 18 % of
a core and were 238 ms late (99th percentile); this takes 12 % and 27 ms, and has packed everything.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import resource
import select
import selectors
import socket
import sys
import time
import zlib
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from sweeper.measuring.load_http import SHOWN, Body, Failed, head_and_body
from sweeper.measuring.load_packing import Packer

JOB = "SPECSWEEP_LOAD"
"""The variables JOB_0, JOB_1, ... hold the pieces of the job; or JOB_FILE names the file that does."""

TICK_S = 0.25
RECEIVED_BYTES = 65536
UNSENT = {"sent_ms": 0.0, "late_ms": 0.0, "e2e_ms": 0.0, "lines": "", "error": "not sent", "hung": True}
now_s = time.perf_counter


class Request:
    """One request and its answer so far. Times count from the moment the connection stands."""

    def __init__(self, index: int, due_s: float, text: bytes) -> None:
        self.index = index
        self.due_s = due_s
        self.unsent = memoryview(text)
        self.opened_s = now_s()
        self.sent_s = 0.0
        self.e2e_s = 0.0
        self.num_lines = 0
        self.body = Body()
        self.packer = Packer()
        self._num_bytes = 0
        self._rest = b""

    def take(self, data: bytes, limits: dict[str, int]) -> int:
        """Keep what has arrived (nothing: the end); by how many bytes its packed lines grew. Raises Failed."""
        at_s = now_s() - self.sent_s
        piece = self.body.feed(data)
        self._rest += piece
        self._num_bytes += len(piece)
        if self.body.status not in (0, 200) and (not data or self.body.is_complete or len(self._rest) > SHOWN):
            raise Failed(f"status {self.body.status}: {self._rest[:SHOWN].decode('utf-8', 'replace')!r}")
        if not data:
            self.body.end()
        if self._num_bytes > limits["stream_bytes"]:
            raise Failed(f"the answer is longer than {limits['stream_bytes']} bytes")
        *lines, self._rest = self._rest.split(b"\n") if self.body.status == 200 else [self._rest]
        if len(self._rest) > limits["line_bytes"]:
            raise Failed(f"a line of the answer is longer than {limits['line_bytes']} bytes")
        if self.body.is_complete:
            self.e2e_s = at_s
            lines.append(self._rest)
        grown = 0
        for line in lines:
            if line.strip():  # blank ones only part events
                self.num_lines += 1
                grown += self.packer.add(at_s, line)
        return grown + (self.packer.end() if self.body.is_complete else 0)


class Load:
    """All requests of one job, sent as they are due, never more than `concurrency` at once."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._limits = job["limits"]
        self.answers: list[dict[str, object]] = [dict(UNSENT) for _ in job["requests"]]
        self._timeout_s, self._whole_s = job["timeout_s"], job["whole_s"]
        self._concurrency = job["concurrency"]
        self._texts = [head_and_body(job["address"], *request) for request in job["requests"]]
        self._offsets = job["offsets_s"]
        self._waiting = deque(range(len(self._texts)))
        self._open: dict[Request, socket.socket] = {}  # oldest first
        self._selector = selectors.DefaultSelector()
        host, port = job["address"]
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._family, self._address = found[0], found[4]
        self._num_packed = 0
        self._began_s = now_s()

    def run(self) -> None:
        """Until every request has its answer or error. Raises SystemExit when nobody waits for them any more."""
        end_s, look_s = self._began_s + self._whole_s, 0.0
        while self._waiting or self._open:
            self._start_due()
            now = now_s()
            if now >= look_s:
                look_s = now + TICK_S
                self._give_up(now, now > end_s)
            for key, _ in self._selector.select(self._nap_s(look_s)):
                try:
                    self._move(key.data)
                except Failed as error:
                    self._end(key.data, str(error))
                except OSError as error:
                    self._end(key.data, str(error.strerror or error))

    def _nap_s(self, look_s: float) -> float:
        wake_s = look_s
        if self._offsets and self._waiting and len(self._open) < self._concurrency:
            wake_s = min(wake_s, self._began_s + self._offsets[self._waiting[0]])
        return max(0.0, wake_s - now_s())

    def _start_due(self) -> None:
        while self._waiting and len(self._open) < self._concurrency:
            due_s = self._began_s + self._offsets[self._waiting[0]] if self._offsets else 0.0
            if due_s > now_s():
                return
            index = self._waiting.popleft()
            request = Request(index, due_s, self._texts[index])
            connection = socket.socket(self._family, socket.SOCK_STREAM)
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open[request] = connection
            code = connection.connect_ex(self._address)
            self._selector.register(connection, selectors.EVENT_WRITE, request)
            if code not in (0, errno.EINPROGRESS):
                self._end(request, os.strerror(code))

    def _move(self, request: Request) -> None:
        connection = self._open[request]
        if not request.unsent:
            with suppress(BlockingIOError):
                self._num_packed += request.take(connection.recv(RECEIVED_BYTES), self._limits)
                if self._num_packed > self._limits["packed_bytes"]:
                    raise SystemExit(f"the answers are more than {self._limits['packed_bytes']} bytes, packed")
                if request.body.is_complete:
                    self._end(request)
            return
        if not request.sent_s:
            code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            request.sent_s = now_s()
        request.unsent = request.unsent[connection.send(request.unsent) :]
        if not request.unsent:
            self._selector.modify(connection, selectors.EVENT_READ, request)

    def _give_up(self, now: float, is_over: bool) -> None:
        """What takes too long: after a request that hangs, no other is begun."""
        if nobody_listens():
            raise SystemExit("nobody waits for the answers any more")
        for request in [r for r in self._open if is_over or now > r.opened_s + self._timeout_s]:
            self._end(request, f"no complete answer within {self._timeout_s:g} s", has_hung=True)
            self._waiting.clear()

    def _end(self, request: Request, error: str = "", has_hung: bool = False) -> None:
        connection = self._open.pop(request)
        self._selector.unregister(connection)
        connection.close()
        if error:
            error += f" ({request.num_lines} lines had arrived)"
        sent_s = request.sent_s or request.opened_s
        self.answers[request.index] = {
            "sent_ms": (sent_s - self._began_s) * 1000,
            "late_ms": (sent_s - request.due_s) * 1000 if self._offsets else 0.0,
            "e2e_ms": round(request.e2e_s * 1e6) / 1000,  # as the times of its lines
            "lines": "" if error else base64.b64encode(b"".join(request.packer.packed)).decode(),
            "error": error,
            "hung": has_hung,
        }


def nobody_listens() -> bool:
    """Whether the other end of stdout is closed: a connection that broke, or a reader that died."""
    poll = select.poll()
    poll.register(1, 0)  # that, and an error, are told unasked
    return bool(poll.poll(0))


def read_job() -> dict[str, Any]:
    """The job; a file that holds it is removed."""
    path = os.environ.get(f"{JOB}_FILE")
    if path:
        file = Path(path).expanduser()
        text = file.read_bytes()
        file.unlink()
    else:
        names = (f"{JOB}_{number}" for number in range(len(os.environ)))
        text = "".join(os.environ.get(name, "") for name in names).encode()
    if not text:
        raise SystemExit(f"{JOB}_0 is not set: does the command that runs this Python pass its environment on?")
    return dict(json.loads(zlib.decompress(base64.b64decode(text))))


def main() -> None:
    """Read the job, send its requests, and print the line with the answers."""
    load = Load(read_job())
    with suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    cpu_s, wall_s = time.process_time(), now_s()
    load.run()
    cpu_s, wall_s = time.process_time() - cpu_s, now_s() - wall_s
    told = {"exchanges": load.answers, "cpu_s": cpu_s, "wall_s": wall_s}
    packed = base64.b64encode(zlib.compress(json.dumps(told).encode()))
    sys.stdout.buffer.write(b"\nspecsweep-load " + packed + b" end\n")
    sys.stdout.buffer.flush()
