"""Decoding at the planted speed: requests, verify steps, the counts and the log lines that come of them."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import graphs, log, settings, speed, tokens
from .launch import Launch, Link, Message

PREFILL_S_PER_TOKEN = 1e-5
SHARED = 0.12
"""Every further request that runs beside one makes it slower by this share."""


@dataclass
class Request:
    """One request that is being answered. `due`: monotonic time of the next step; it keeps `accepted` drafts."""

    rid: str
    answer: list[int]
    natural_end: bool
    prompt_tokens: int
    cached_tokens: int
    steps: Iterator[int]
    due: float
    rate: float
    counted: bool
    accepted: int = 0
    sent: int = 0
    verify_steps: int = 0
    correct: int = 0
    histogram: list[int] = field(default_factory=list)


class Decoder:
    """What rank 0 does between messages. `changed`: the numbers that others may ask for have changed."""

    def __init__(self, launch: Launch, output: Link, info: Message) -> None:
        self.launch, self.info = launch, info
        self.graphs = launch.graphs and launch.fault.name != "graph_false"
        self.plan = speed.plan(launch.args, os.environ, graphs=self.graphs, bypassed=launch.bypassed)
        self.factor = speed.launch_factor(launch.number, settings.jitter())
        self.misbehaved = False
        self.changed = True
        self._output = output
        self._running: list[Request] = []
        self._queue: list[Request] = []
        self._known: set[tuple[int, ...]] = set()
        self._num_counted = 0
        self._total = {"prompt": 0, "generated": 0, "verify": 0, "requests": 0, "cached": 0}
        self._passes = {"decode": 0, "prefill": 0}
        self._window = {"steps": 0, "tokens": 0, "since": time.monotonic()}
        self._ticks = {"steps": 0, "tokens": 0, "throughput": 0.0, "length": 0.0}

    @property
    def num_running(self) -> int:
        """Requests that are being decoded."""
        return len(self._running)

    @property
    def speculative(self) -> bool:
        """Whether steps verify drafts."""
        return self.launch.args["speculative_algorithm"] is not None

    def wait_s(self) -> float | None:
        """Seconds until the next step is due; None while nothing runs."""
        if not self._running:
            return None
        return max(0.0, min(request.due for request in self._running) - time.monotonic())

    def in_the_middle_of(self, number: int) -> bool:
        """Whether the n-th request that a client sent has half its tokens, for the first time."""
        if self.misbehaved or self._num_counted != number:
            return False
        return any(r.counted and r.sent >= len(r.answer) // 2 for r in self._running)

    def handle(self, message: Message, link: Link) -> None:
        """One message of the parent: a request, an abort, a flush, or a question."""
        if "generate" in message:
            self._accept(message["generate"])
        elif "abort" in message:
            for request in list(self._running):
                if message["abort"] in ("", request.rid):
                    self._end(request, {"type": "abort", "message": "Abort in waiting queue"})
        elif "flush" in message:
            link.send({"reply": message["flush"], "idle": self._flush()})
        elif "state" in message:
            link.send({"reply": message["state"], **self.stats()})

    def _accept(self, asked: Message) -> None:
        prompt, fault = asked["prompt"], self.launch.fault
        if asked["counted"]:
            self._num_counted += 1
            if fault.name == "silent_hang_after_n" and self._num_counted > int(fault.number(3)):
                return
        answer, natural = tokens.answer(prompt, asked["max_new_tokens"])
        cached = max(0, len(prompt) - (2 if self.speculative else 1)) if tuple(prompt) in self._known else 0
        if asked["counted"]:
            self._known.add(tuple(prompt))
        named = f"{prompt} {self.plan.depth} {self.plan.chances}"
        noise = random.Random(f"{self.launch.number} {self._total['requests']}").uniform(-1, 1) * settings.jitter()
        rate = self.plan.throughput * self.factor * (1 + noise / 4)
        start = time.monotonic() + (len(prompt) - cached) * PREFILL_S_PER_TOKEN
        steps = speed.accepted(self.plan, named) if self.speculative else itertools.repeat(0)
        request = Request(
            asked["rid"], answer, natural, len(prompt), cached, steps, start + 1 / rate, rate, asked["counted"]
        )
        self._prefill_line(request)
        limit = self.info["max_running"]
        (self._running if len(self._running) < limit else self._queue).append(request)

    def _prefill_line(self, request: Request) -> None:
        self._passes["prefill"] += 1
        self._total["prompt"] += request.prompt_tokens
        self._total["cached"] += request.cached_tokens
        pending = "#pending-token: 0, " if self.launch.version >= (0, 5, 15) else ""
        log.say(
            f"Prefill batch, #new-seq: 1, #new-token: {request.prompt_tokens - request.cached_tokens}, "
            f"#cached-token: {request.cached_tokens}, token usage: 0.00, #running-req: {len(self._running)}, "
            f"#queue-req: {len(self._queue)}, {pending}cuda graph: {self.graphs}, "
            "input throughput (token/s): 12.31"
        )

    def step(self) -> None:
        """Every request whose time has come gets its next tokens; late steps follow at once, none is lost."""
        now = time.monotonic()
        for request in [r for r in self._running if r.due <= now]:
            first = request.sent == 0
            self._deliver(request, request.accepted + 1)
            if not first:
                self._count(request, request.accepted)
            if request.sent >= len(request.answer):
                kind = "stop" if request.natural_end else "length"
                reason = (
                    {"type": kind, "matched": 163586} if kind == "stop" else {"type": kind, "length": request.sent}
                )
                self._end(request, reason)
                continue
            request.accepted = next(request.steps)
            count = min(request.accepted + 1, len(request.answer) - request.sent)
            request.due += count / request.rate * (1 + SHARED * (len(self._running) - 1))

    def _deliver(self, request: Request, count: int) -> None:
        new = request.answer[request.sent : request.sent + count]
        request.sent += len(new)
        self._total["generated"] += len(new)
        if request.sent < len(request.answer):
            self._output.send({"rid": request.rid, "ids": new, "meta": self._meta(request)})

    def _count(self, request: Request, accepted: int) -> None:
        if self.speculative:
            request.verify_steps += 1
            request.correct += accepted
            request.histogram += [0] * (self.plan.depth + 1 - len(request.histogram))
            request.histogram[accepted] += 1
            self._total["verify"] += 1
        self._passes["decode"] += 1
        if request is self._running[0]:
            self._window["steps"] += 1
        self._window["tokens"] += accepted + 1
        if self._window["steps"] >= self.launch.args["decode_log_interval"]:
            self._tick(request)

    def _tick(self, request: Request) -> None:
        """What happens every decode_log_interval steps: the log line, and the only update of the averages."""
        now = time.monotonic()
        window, args, old = self._window, self.launch.args, self.launch.version < (0, 5, 15)
        length = window["tokens"] / window["steps"] / max(1, len(self._running))
        self._ticks["throughput"] = window["tokens"] / max(1e-6, now - window["since"])
        text = ""
        if self.speculative:
            drafts = args["speculative_num_draft_tokens"]
            rate = length / drafts if old else (length - 1) / max(1, drafts - 1)
            self._ticks["steps"] += window["steps"]
            self._ticks["tokens"] += length * window["steps"]
            self._ticks["length"] = length
            text = f"accept len: {length:.2f}, accept rate: {rate:.2f}, "
        log.say(
            f"Decode batch, #running-req: {len(self._running)}, #token: {request.prompt_tokens + request.sent}, "
            f"token usage: 0.00, {text}cuda graph: {self.replayed}, gen throughput (token/s): "
            f"{self._ticks['throughput']:.2f}, #queue-req: {len(self._queue)}"
            + (", " if self.launch.version < (0, 5, 10) else "")
        )
        self._window = {"steps": 0, "tokens": 0, "since": now}
        self.changed = True

    @property
    def replayed(self) -> bool:
        """Whether the batch that runs now is one that was captured."""
        return self.graphs and len(self._running) <= max(graphs.sizes(self.launch))

    def _end(self, request: Request, reason: Message) -> None:
        self._running.remove(request)
        self._total["requests"] += 1
        new = request.answer[request.sent :] if reason["type"] != "abort" else []
        last = request.answer[max(0, request.sent - len(new)) : request.sent] if new else []
        meta = {**self._meta(request), "finish_reason": reason, "verify": request.verify_steps}
        meta |= {"correct": request.correct, "histogram": request.histogram}
        self._output.send({"rid": request.rid, "ids": last, "meta": meta, "all": request.answer[: request.sent]})
        if self._queue:
            waiting = self._queue.pop(0)
            waiting.due = time.monotonic() + 1 / waiting.rate
            self._running.append(waiting)
        self.changed = True

    def _meta(self, request: Request) -> Message:
        return {"prompt": request.prompt_tokens, "cached": request.cached_tokens, "completion": request.sent}

    def _flush(self) -> bool:
        if self._running or self._queue:
            log.say(
                "Cache not flushed because there are pending requests. "
                f"#queue-req: {len(self._queue)}, #running-req: {len(self._running)}"
            )
            return False
        self._known.clear()
        self._ticks |= {"steps": 0, "tokens": 0}
        log.say("Cache flushed successfully!")
        self.changed = True
        return True

    def stats(self) -> Message:
        """The numbers that /server_info, /v1/loads and /metrics are made of."""
        ticks = self._ticks
        average = ticks["tokens"] / ticks["steps"] if ticks["steps"] else None
        return {
            "running": len(self._running),
            "queued": len(self._queue),
            "throughput": ticks["throughput"],
            "average_length": average,
            "window_length": ticks["length"],
            "total": dict(self._total),
            "passes": dict(self._passes),
            "graphs": self.graphs,
        }
