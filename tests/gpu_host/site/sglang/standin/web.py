"""The HTTP side: the endpoints that are asked for, with their status rules, and the faults that belong to HTTP."""

from __future__ import annotations

import json
import threading
import time
import uuid
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from . import answers, log, metrics, settings, tokens
from .engine import Engine
from .streams import completion, generate

FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. "
    "(When there are running or waiting requests, the operation will not be performed.)\n"
)
GARBAGE = b"\x00\xff<html>502 Bad Gateway</html>\xfe"
DEPRECATED = {"/get_server_info": "/server_info", "/get_model_info": "/model_info", "/get_load": "/v1/loads"}


class Server(ThreadingHTTPServer):
    """Answers for `engine`. `draining`: an end has been asked for."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.draining = False
        self.first_request = threading.Event()
        super().__init__((engine.launch.args["host"], engine.launch.args["port"]), Handler)

    def handle_error(self, *_: object) -> None:
        """A client that went away is no news."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self._route()

    def do_POST(self) -> None:
        self._route()

    def log_message(self, *_: object) -> None:
        """The access log is written where the status is known."""

    def _route(self) -> None:
        engine, path = self.server.engine, urlsplit(self.path).path
        if engine.frozen.is_set():
            time.sleep(settings.max_s())
        body = self._body()
        fault = engine.launch.fault
        measured = path in ("/generate", "/v1/chat/completions") and engine.ready
        if fault.name == "slow_http" and engine.ready:
            time.sleep(fault.number(5))
        if fault.name == "garbage_http" and engine.ready:
            return self.reply(200, GARBAGE, "application/json")
        if fault.name == "http_500" and measured:
            return self.reply(500, b"Internal Server Error", "text/plain")
        if path in DEPRECATED:
            log.say(
                f"Endpoint '{path}' is deprecated and will be removed in a future version. "
                f"Please use '{DEPRECATED[path]}' instead."
            )
        handler = ROUTES.get((self.command, path))
        if handler is None:
            return self.json({"detail": "Not Found"}, 404)
        return handler(self, body)  # type: ignore[no-any-return]

    def _body(self) -> Any:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            return json.loads(data) if data else {}
        except ValueError:
            return {}

    def json(self, body: Any, status: int = 200) -> None:
        """A JSON answer."""
        self.reply(status, answers.dumps(body), "application/json")

    def reply(self, status: int, body: bytes, kind: str) -> None:
        """A whole answer, and its line in the log."""
        self.said(status)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def said(self, status: int) -> None:
        """The line of the access log."""
        log.access(self.client_address, f"{self.command} {self.path}", status, HTTPStatus(status).phrase)

    def health(self, _: Any) -> None:
        """503 while starting or draining; else a token must come from the scheduler, after a poll at least."""
        engine = self.server.engine
        if not engine.ready or self.server.draining:
            return self.reply(503, b"", "text/plain")
        rid, asked = f"HEALTH_CHECK_{time.time()}", time.monotonic()
        engine.generate(rid, [0], 1, counted=False)
        limit = settings.waited(20)
        while time.monotonic() < asked + limit:
            time.sleep(settings.scaled(0.1))
            if engine.last_heard > asked:
                engine.forget(rid)
                return self.reply(200, b"", "text/plain")
        log.say(
            "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. "
            f"tic start time: {time.strftime('%H:%M:%S')}. last_heartbeat time: {time.strftime('%H:%M:%S')}"
        )
        engine.unhealthy = True
        return self.reply(503, b"", "text/plain")

    def server_info(self, _: Any) -> None:
        """Asks rank 0, and hangs with it."""
        engine = self.server.engine
        if stats := engine.ask("state"):
            self.json(answers.server_info(engine.launch, engine.info, stats))

    def model_info(self, _: Any) -> None:
        """Known to this process."""
        self.json(answers.model_info(self.server.engine.launch))

    def models(self, _: Any) -> None:
        """The OpenAI list of models."""
        self.json(answers.models(self.server.engine.launch, self.server.engine.info))

    def loads(self, _: Any) -> None:
        """What runs right now."""
        engine = self.server.engine
        self.json(answers.loads(engine.launch, engine.info, engine.stats))

    def get_load(self, _: Any) -> None:
        """The same, in the older shape."""
        stats = self.server.engine.stats
        load = {"dp_rank": 0, "num_reqs": stats["running"], "num_waiting_reqs": stats["queued"], "num_tokens": 0}
        self.json([{**load, "num_pending_tokens": 0, "ts_tic": time.monotonic()}])

    def metrics(self, _: Any) -> None:
        """Only with --enable-metrics."""
        engine = self.server.engine
        if not engine.launch.args["enable_metrics"]:
            return self.json({"detail": "Not Found"}, 404)
        page = metrics.page(engine.launch, engine.info, engine.stats)
        return self.reply(200, page, "text/plain; version=1.0.0; charset=utf-8")

    def flush(self, _: Any) -> None:
        """400 while anything runs; newer versions wait for `timeout` seconds first."""
        engine = self.server.engine
        wait = float(parse_qs(urlsplit(self.path).query).get("timeout", ["0"])[0])
        deadline = time.monotonic() + (wait if engine.launch.version >= (0, 5, 10) else 0)
        while True:
            answer = engine.ask("flush")
            if (answer and answer["idle"]) or time.monotonic() >= deadline:
                break
            time.sleep(0.05)
        ok = bool(answer and answer["idle"])
        self.reply(200 if ok else 400, (FLUSHED if ok else "Flush cache failed.\n").encode(), "text/plain")

    def abort(self, body: Any) -> None:
        """Ends one request, or all."""
        self.server.engine.tell({"abort": "" if body.get("abort_all") else body.get("rid", "-")})
        self.reply(200, b"", "text/plain")

    def generate(self, body: Any) -> None:
        """/generate, single or in batches."""
        self.server.first_request.set()
        prompt = body.get("input_ids") or body.get("text")
        if not prompt:
            words = "Either text, input_ids or input_embeds should be provided."
            log.say(f"[http_server] Error: {words}")
            return self.json({"error": {"message": words}}, 400)
        return generate(self, prompt, body)

    def chat(self, body: Any) -> None:
        """/v1/chat/completions: no speculation counters, as in the real one."""
        self.server.first_request.set()
        messages = body.get("messages") or []
        text = (
            "".join(f"<|im_{m.get('role')}|>{m.get('content')}<|im_end|>" for m in messages) + "<|im_assistant|>"
        )
        return completion(self, tokens.encode(text), body, uuid.uuid4().hex)


ROUTES: dict[tuple[str, str], Any] = {
    ("GET", "/health"): Handler.health,
    ("GET", "/health_generate"): Handler.health,
    ("GET", "/server_info"): Handler.server_info,
    ("GET", "/get_server_info"): Handler.server_info,
    ("GET", "/model_info"): Handler.model_info,
    ("GET", "/get_model_info"): Handler.model_info,
    ("GET", "/v1/models"): Handler.models,
    ("GET", "/v1/loads"): Handler.loads,
    ("GET", "/get_load"): Handler.get_load,
    ("GET", "/metrics"): Handler.metrics,
    ("GET", "/flush_cache"): Handler.flush,
    ("POST", "/flush_cache"): Handler.flush,
    ("POST", "/abort_request"): Handler.abort,
    ("POST", "/generate"): Handler.generate,
    ("POST", "/v1/chat/completions"): Handler.chat,
}
