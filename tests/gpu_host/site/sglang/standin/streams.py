"""Answers to generation requests: whole or as server-sent events, and the faults that spoil them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import answers, tokens
from .launch import Message

if TYPE_CHECKING:
    from .web import Handler

SPOILED_AFTER = 5
"""Chunks before a fault of the stream shows."""


class Stream:
    """A chunked body of `data:` events. `broken`: the connection was cut in the middle."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._count = 0
        self.broken = False
        handler.said(200)
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

    def event(self, body: Any) -> None:
        """One event, spoiled if this launch's fault says so."""
        self._count += 1
        engine = self._handler.server.engine
        fault = engine.launch.fault.name if engine.ready and self._count > SPOILED_AFTER else ""
        if fault == "garbage_stream":
            self._write(b'data: {"text": \xff\xfe half a json\n\n')
        elif fault == "truncated_stream":
            self.broken = True
            self._handler.close_connection = True
        else:
            self._write(b"data: " + (body if isinstance(body, bytes) else answers.dumps(body)) + b"\n\n")

    def _write(self, data: bytes) -> None:
        if not self.broken:
            self._handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self._handler.wfile.flush()

    def close(self) -> None:
        """The end of the body; not sent when the connection was cut."""
        if not self.broken:
            self._handler.wfile.write(b"0\r\n\r\n")
            self._handler.wfile.flush()


def _pieces(handler: Handler, rid: str, ids: list[int], limit: int, *, counted: bool) -> Iterator[Message]:
    """What comes of one request, the last piece has "all"; the request ends when the client goes."""
    engine = handler.server.engine
    inbox = engine.generate(rid, ids, limit, counted=counted)
    try:
        while True:
            piece = inbox.get()
            if engine.frozen.is_set():
                time.sleep(3600)
            yield piece
            if "all" in piece:
                return
    finally:
        engine.forget(rid)


def generate(handler: Handler, prompt: Any, body: Message) -> None:
    """/generate for one prompt (text or ids) or for several."""
    engine = handler.server.engine
    several = isinstance(prompt, list) and not isinstance(prompt[0], int)
    given = [tokens.encode(p) if isinstance(p, str) else p for p in (prompt if several else [prompt])]
    limit = (body.get("sampling_params") or {}).get("max_new_tokens", 128)
    began, counted = time.time(), engine.ready
    rids = [body.get("rid") or uuid.uuid4().hex if not several else uuid.uuid4().hex for _ in given]
    if body.get("stream") and not several:
        return _stream(handler, rids[0], given[0], limit, began)
    flows = [_pieces(handler, rid, ids, limit, counted=counted) for rid, ids in zip(rids, given, strict=True)]
    results = []
    for rid, flow in zip(rids, flows, strict=True):
        last = list(flow)[-1]
        info = answers.meta_info(engine.launch, rid, last["meta"], began)
        results.append({"text": tokens.decode(last["all"]), "output_ids": last["all"], "meta_info": info})
    return handler.json(results if several else results[0])


def _stream(handler: Handler, rid: str, ids: list[int], limit: int, began: float) -> None:
    """Cumulative text and ids, one event per step; the counters come with the last one."""
    engine = handler.server.engine
    stream, text = Stream(handler), ""
    out: list[int] = []
    incremental = bool(engine.launch.args.get("incremental_streaming_output"))
    for piece in _pieces(handler, rid, ids, limit, counted=engine.ready):
        text, out = text + piece["text"], out + piece["ids"]
        meta = answers.meta_info(engine.launch, rid, piece["meta"], began)
        new = (piece["text"], piece["ids"]) if incremental else (text, out)
        stream.event({"text": new[0], "output_ids": new[1], "meta_info": meta})
        if stream.broken:
            return
    stream.event(b"[DONE]")
    stream.close()


def completion(handler: Handler, ids: list[int], body: Message, rid: str) -> None:
    """/v1/chat/completions, streamed or not."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or 128
    frame = {"id": rid, "created": int(time.time()), "model": body.get("model", "default")}
    pieces = _pieces(handler, rid, ids, limit, counted=handler.server.engine.ready)
    if not body.get("stream"):
        last = list(pieces)[-1]
        message = {"role": "assistant", "content": tokens.decode(last["all"]), "reasoning_content": None}
        choice = {"index": 0, "message": message, "logprobs": None, **_ended(last["meta"])}
        return handler.json(
            {**frame, "object": "chat.completion", "choices": [choice], "usage": _usage(last["meta"])}
        )
    frame["object"] = "chat.completion.chunk"
    stream, empty = Stream(handler), {"logprobs": None, "finish_reason": None, "matched_stop": None}
    first = {"reasoning_content": None, "role": "assistant", "content": ""}
    stream.event({**frame, "choices": [{"index": 0, "delta": first, **empty}]})
    meta: Message = {}
    for piece in pieces:
        meta = piece["meta"]
        delta = {"reasoning_content": None, "content": piece["text"]}
        stream.event({**frame, "choices": [{"index": 0, "delta": delta, **empty}]})
        if stream.broken:
            return None
    end = {"index": 0, "delta": {"reasoning_content": None}, "logprobs": None, **_ended(meta)}
    stream.event({**frame, "choices": [end]})
    stream.event({**frame, "choices": [], "usage": _usage(meta)})
    stream.event(b"[DONE]")
    return stream.close()


def _ended(meta: Message) -> Message:
    return {"finish_reason": meta["finish_reason"]["type"], "matched_stop": meta["finish_reason"].get("matched")}


def _usage(meta: Message) -> Message:
    usage = {"prompt_tokens": meta["prompt"], "total_tokens": meta["prompt"] + meta["completion"]}
    return {**usage, "completion_tokens": meta["completion"], "prompt_tokens_details": None, "reasoning_tokens": 0}
