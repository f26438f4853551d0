"""A stand-in for llama.cpp's server that starts in a tenth of a second: sockets and nothing else.

`python -S -E llama.py FOLDER --model PATH --alias NONCE --host H --port P ...`. It answers what the engine asks,
with a planted speed. FOLDER/fault says what goes wrong: `NAME DETAIL COUNT`, for the next COUNT launches.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys

TOKENS = 8
FLAGS = """model alias host port metrics ctx-size threads parallel spec-type spec-ngram-simple-size-n
spec-ngram-simple-size-m spec-ngram-map-k4v-size-n spec-ngram-map-k4v-size-m spec-ngram-map-k4v-min-hits
spec-ngram-map-k-size-n spec-ngram-map-k-size-m"""


def main(argv: "list[str]") -> None:
    folder, *words = argv
    if "--version" in words:
        print("version: 1 (abcdef0)")
    elif "--help" in words:
        print("\n".join(f"--{flag} VALUE" for flag in FLAGS.split()))
    else:
        serve(options(words), *take_fault(folder))


def options(words: "list[str]") -> "dict[str, str]":
    pairs = zip(words, [*words[1:], ""])  # noqa: B905  (any Python of a host)
    return {word[2:]: value for word, value in pairs if word.startswith("--")}


def take_fault(folder: str) -> "tuple[str, str]":
    """The fault of this launch and its detail; two empty words for none."""
    try:
        stream = open(os.path.join(folder, "fault"), "r+")  # noqa: PTH118, PTH123, SIM115
    except OSError:
        return "", ""
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        words = stream.read().split()
        if not words or int(words[2]) < 1:
            return "", ""
        stream.seek(0)
        stream.truncate()
        stream.write(f"{words[0]} {words[1]} {int(words[2]) - 1}")
        return words[0], words[1]


def serve(asked: "dict[str, str]", fault: str, detail: str) -> None:
    begin(fault, detail)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((asked["host"], int(asked["port"])))
        listener.listen(16)
        print("main: model loaded\nmain: server is listening on http", flush=True)
        num_chats = 0
        while True:
            connection, _ = listener.accept()
            with connection:
                path = read_request(connection)
                num_chats += path.startswith("/v1/")
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    answer(connection, path, asked, fault if num_chats > 1 else "", detail)


def begin(fault: str, detail: str) -> None:
    """What goes wrong before it listens."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN if fault == "ignore_sigterm" else lambda *_: os._exit(0))
    print("srv: loading model", flush=True)
    if fault == "crash_start":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "out_of_memory":
        print("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 99 MiB on device 0: cudaMalloc failed: "
              "out of memory", flush=True)  # fmt: skip
        os._exit(1)
    if fault in ("slow_start", "hang_start"):
        pause(float(detail))
    if fault == "orphan" and not os.fork():
        os.setsid()
        pause(600)
        os._exit(0)
    if fault == "not_utf8":
        os.write(1, b"\xff\xfe\x00\x80 \x1b[2J\x1b]0;title\x07 \xc3\x28\n" * 50)
    if fault == "flood":
        block = b"a line that says nothing at all, again and again\n" * 20000
        for _ in range(int(detail) * 1048576 // len(block)):
            os.write(1, block)


def read_request(connection: socket.socket) -> str:
    """The path of one request, its body read."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return ""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
    )
    while len(body) < length and (more := connection.recv(65536)):
        body += more
    return head.split(b" ")[1].decode()


def answer(connection: socket.socket, path: str, asked: "dict[str, str]", fault: str, detail: str) -> None:
    if path.startswith("/v1/"):
        chat(connection, asked, fault, detail)
    elif path == "/props":
        page(connection, {"model_alias": asked["alias"], "model_path": asked["model"], "total_slots": 1})
    else:
        page(connection, {"status": "ok"})


def page(connection: socket.socket, value: object) -> None:
    body = json.dumps(value).encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def chat(connection: socket.socket, asked: "dict[str, str]", fault: str, detail: str) -> None:
    """One streamed answer, or what comes in its place."""
    if fault == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "hang":
        pause(600)
    if fault == "http_500":
        connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")
        return
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n")
    if fault == "garbage":
        connection.sendall(b'data: {"choices": [{"delta": \xff\xfe}]}\n\ndata: [DONE\n\n')
        return
    pause_s = float(detail) if fault == "slow" else token_s(asked)
    for number in range(TOKENS):
        pause(pause_s)
        event(connection, choices=[{"delta": {"content": f" w{number}"}, "finish_reason": None}])
        if fault == "truncated" and number == TOKENS // 2:
            return
    event(connection, choices=[{"delta": {}, "finish_reason": "stop"}])
    drafts = {"draft_n": TOKENS, "draft_n_accepted": TOKENS // 2} if "spec-type" in asked else {}
    timings = {"predicted_ms": 1000 * pause_s * TOKENS, "prompt_ms": 1.0, "predicted_n": TOKENS, **drafts}
    event(connection, choices=[], usage={"completion_tokens": TOKENS, "prompt_tokens": 9}, timings=timings)
    connection.sendall(b"data: [DONE]\n\n")


def event(connection: socket.socket, **chunk: object) -> None:
    connection.sendall(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def pause(seconds: float) -> None:
    """As time.sleep, which libfaketime breaks."""
    select.select((), (), (), seconds)


def token_s(asked: "dict[str, str]") -> float:
    """The planted pace: another one for each configuration, 10 ms for the baseline."""
    if "spec-type" not in asked:
        return 0.010
    sizes = [int(value) for name, value in asked.items() if name.startswith("spec-ngram")]
    return 0.008 + 0.0002 * (sum(sizes) % 17)


if __name__ == "__main__":
    main(sys.argv[1:])
