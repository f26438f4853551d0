"""A stand-in server for many streams at once: what it sends is exact, and what it saw can be asked.

    with Streaming() as server:
        server.port; server.url; server.peak; server.num_broken

The path of a request decides:

- /v1/chat/completions: `max_tokens` pieces of text as llama.cpp sends them, `rate` a second, then its figures
- /generate: the same as SGLang sends it, the whole text so far in each event
- /lines: the lines in the body, each at once; /length, /close: without chunks; /noise: what cannot be packed
- /503, /garbage, /half, /hang, /die: what can go wrong
- /metrics: counters that grow by two drafts and one accepted token with each answer

It runs on a thread, or as a process of its own: `python -m tests.host_load.streaming RATE`, which prints its port.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Any, Self

WORDS = (
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "by",
    "the",
    "door",
    "and",
    "saw",
    "that",
    "nobody",
    "was",
    "there",
)


class Streaming:
    """See the module. `rate`: pieces per second of each stream; 0: as fast as they are taken."""

    def __init__(self, rate: float = 0.0) -> None:
        self.rate = rate
        self.port = 0
        self.peak = 0
        self.num_open = 0
        self.num_broken = 0
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.arrived_s: list[float] = []
        self.num_flushed = 0
        self.own_ms: list[float] = []
        self._num_answers = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Listen no more, and drop every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
            self._thread.join(10)

    def _end(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self.serve())
        self._loop.close()

    async def serve(self) -> None:
        """Until cancelled."""
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0, backlog=1000)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        async with server:
            await server.serve_forever()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, path, _ = head.split(" ", 2)
            lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
            text = await reader.readexactly(int(lengths[0].split()[1])) if lengths else b""
            if method == "POST" and path != "/flush_cache":
                self.posts.append((path, json.loads(text or "{}")))
                self.arrived_s.append(time.monotonic())
            await self._answer(path, json.loads(text or "{}"), reader, writer)
        self._writers.discard(writer)
        writer.close()

    async def _answer(
        self, path: str, asked: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if path == "/metrics":
            return await self._say(writer, self._metrics())
        if path == "/flush_cache":
            self.num_flushed += 1
            return await self._say(writer, "flushed")
        self.num_open += 1
        self.peak = max(self.peak, self.num_open)
        try:
            if path == "/v1/chat/completions":
                await self._stream(writer, self._llamacpp(asked["max_tokens"]))
            elif path == "/generate":
                await self._stream(writer, self._sglang(asked["sampling_params"]["max_new_tokens"]))
            elif path == "/lines":
                await self._stream(writer, _each(asked["lines"]))
            elif path == "/noise":
                await self._stream(writer, _each([os.urandom(20_000).hex() for _ in range(40)]))
            else:
                await self._misbehave(path, reader, writer)
            self._num_answers += 1
        except (ConnectionError, asyncio.CancelledError):
            self.num_broken += 1
            raise
        finally:
            self.num_open -= 1
        return None

    async def _misbehave(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ok = b"HTTP/1.1 200 OK\r\n"
        if path == "/length":
            writer.write(ok + b"Content-Length: 9\r\n\r\none\n\ntwo\n")
        elif path == "/close":
            writer.write(ok + b"\r\none\ntwo")
        elif path == "/503":
            writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 15\r\n\r\nno slot\nis free")
        elif path == "/garbage":
            writer.write(b"220 mail.example ESMTP\r\n\r\n")
        else:
            writer.write(ok + b"Transfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
            await writer.drain()
            if path == "/die":
                for other in self._writers:
                    other.transport.abort()
            if path == "/hang":
                await reader.read()  # until the other side is gone
                self.num_broken += 1
        await writer.drain()

    async def _say(self, writer: asyncio.StreamWriter, text: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text.encode()))
        await writer.drain()

    async def _stream(self, writer: asyncio.StreamWriter, lines: AsyncIterator[str]) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        async for line in lines:
            event = line.encode() + b"\n\n"
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _paced(self, count: int) -> AsyncIterator[int]:
        """0, 1, ... at the rate, whatever the work between takes; then the time that it took is noted."""
        began_s = time.perf_counter()
        for number in range(count):
            wait_s = (number + 1) / self.rate - (time.perf_counter() - began_s) if self.rate else 0.0
            await asyncio.sleep(max(0.0, wait_s))
            yield number
        self.own_ms.append((time.perf_counter() - began_s) * 1000)

    async def _llamacpp(self, count: int) -> AsyncIterator[str]:
        fixed = {"created": 1795984116, "id": "chatcmpl-W2athdYe7vJui7lsvUVZyC2RSEbrNoKb", "model": "nonce-1"}
        async for number in self._paced(count):
            delta = {"content": f" {WORDS[number % len(WORDS)]}"}
            yield _event(choices=[{"finish_reason": None, "index": 0, "delta": delta}], **fixed)
        yield _event(choices=[{"finish_reason": "length", "index": 0, "delta": {}}], **fixed)
        timings = {"predicted_n": count, "prompt_ms": 0.0, "predicted_ms": self.own_ms[-1]}
        yield _event(choices=[], usage={"completion_tokens": count, "prompt_tokens": 5}, timings=timings)
        yield "data: [DONE]"

    async def _sglang(self, count: int) -> AsyncIterator[str]:
        text, ids = "", []
        async for number in self._paced(count):
            text += f" {WORDS[number % len(WORDS)]}"
            ids.append(1000 + number % 977)
            reason = {"type": "length", "length": count} if number == count - 1 else None
            meta = {"id": "f601360d47d34ee4", "finish_reason": reason, "prompt_tokens": 5}
            yield _event(text=text, output_ids=ids, meta_info={**meta, "completion_tokens": number + 1})
        yield "data: [DONE]"

    def _metrics(self) -> str:
        prefix = "llamacpp:spec_decode_num_"
        counts = {"drafts_total": 2, "draft_tokens_total": 4, "accepted_tokens_total": 1}
        lines = [
            f"# TYPE {prefix}{name} counter\n{prefix}{name} {n * self._num_answers}\n"
            for name, n in counts.items()
        ]
        return "".join(lines)


def _event(**fields: object) -> str:
    return f"data: {json.dumps(fields, separators=(',', ':'))}"


async def _each(lines: list[str]) -> AsyncIterator[str]:
    for line in lines:
        yield line


if __name__ == "__main__":
    with Streaming(float(sys.argv[1])) as server:
        print(server.port, flush=True)
        sys.stdin.read()  # until whoever started it lets go
