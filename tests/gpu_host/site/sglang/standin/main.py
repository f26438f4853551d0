"""The life of the parent process: arguments, children, the HTTP server, and the end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from . import answers, failures, faults, gpus, log, models, nodes, options, orphans, rules, settings
from .engine import Engine, SchedulerDied
from .failures import ServerError
from .launch import Launch
from .web import Server

WARNING = """/env/site/sglang/launch_server.py:55: UserWarning: 'python -m sglang.launch_server' is \
still supported, but 'sglang serve' is the recommended entrypoint.
  Example: sglang serve --model-path <model> [options]
  warnings.warn("""
FORCED = {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}
DEFAULTS = {"NCCL_CUMEM_ENABLE": "0", "NCCL_NVLS_ENABLE": "0"}
CANNOT_BIND = "ERROR:    [Errno 98] error while attempting to bind on address ('{}', {}): address already in use"


def run(argv: Sequence[str]) -> NoReturn:
    """Everything, to the exit code."""
    settings.end_in_time()
    launch = prepare(argv)
    engine = Engine(launch)
    _launch_phase_signals(engine)
    nodes.meet(launch)
    engine.start()
    try:
        engine.wait_ready()
    except SchedulerDied as error:
        log.raw(ServerError(failures.ARGUMENTS[:1], str(error)).traceback())
        engine.say_killing(with_parent=False)
        engine.kill_children()
        raise SystemExit(1) from None
    if launch.args["node_rank"] > 0:
        nodes.pretend(launch)
    serve(engine)


def prepare(argv: Sequence[str]) -> Launch:
    """Arguments as this version resolves them. Exits with 2 or 1 when it refuses them."""
    version = settings.version()
    if version >= (0, 5, 10):
        log.raw(WARNING)
    time.sleep(settings.scaled(0.05))
    fault = faults.choose(argv)
    hidden = (fault.detail or "--speculative-eagle-topk") if fault.name == "unknown_flag" else ""
    args = options.parse(argv, hidden)
    try:
        target = models.read(args["model_path"])
        rules.resolve(args, version, target, os.environ)
        draft = _draft(args, target)
    except ServerError as error:
        log.raw(error.traceback())
        raise SystemExit(1) from None
    os.environ.update(FORCED | {name: os.environ.get(name, value) for name, value in DEFAULTS.items()})
    free = tuple(gpus.TOTAL_MIB - used for used in gpus.used(settings.state()))
    launch = Launch(args, version, settings.count_launch(), time.monotonic(), fault, target, draft, free)
    gpus.misread(settings.state(), fault.name, fault.number(60) if fault.name.startswith("nvidia_smi") else 0)
    log.say(answers.shown_args(launch))
    log.say("Using default HuggingFace chat template with detected content format: string")
    return launch


def _draft(args: settings.Args, target: models.Model) -> models.Model | None:
    """The drafter that will be loaded; without a path some architectures take their own extra layer."""
    if args["speculative_algorithm"] not in ("EAGLE", "EAGLE3", "STANDALONE"):
        return None
    path = args["speculative_draft_model_path"]
    if path is None or path == args["model_path"]:
        own = "DeepseekV3ForCausalLMNextN" if path else target.architecture
        return replace(target, architecture=own, weights_gib=5.0)
    return models.read(path)


def _launch_phase_signals(engine: Engine) -> None:
    """While the children start, a SIGQUIT of one brings all down at once; SIGTERM is nobody's business yet."""

    def child_failed(*_: object) -> None:
        log.say("Received sigquit from a child process. It usually means the child failed.")
        engine.kill_tree()

    signal.signal(signal.SIGQUIT, child_failed)
    if engine.launch.fault.name == "ignore_sigterm":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def serve(engine: Engine) -> NoReturn:
    """Open the port, warm up, and wait for the end."""
    launch = engine.launch
    log.say(f"INFO:     Started server process [{os.getpid()}]")
    log.say("INFO:     Waiting for application startup.")
    log.say("Using fallback token IDs for yes/no (9693/2152)")
    log.say("INFO:     Application startup complete.")
    server = _bind(engine)
    host, port = launch.args["host"], launch.args["port"]
    log.say(f"INFO:     Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
    orphans.keep_port(launch, server.fileno())
    signal.signal(signal.SIGINT, lambda *_: engine.events.put("sigint"))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    threading.Thread(target=_warm_up, args=(engine, server), daemon=True).start()
    server.first_request.wait()
    _running_phase_signals(engine)
    while True:
        _handle(engine, server, engine.events.get())


def _bind(engine: Engine) -> Server:
    launch = engine.launch
    orphans.steal_port(launch)
    try:
        return Server(engine)
    except OSError:
        log.say(CANNOT_BIND.format(launch.args["host"], launch.args["port"]))
        log.say("INFO:     Waiting for application shutdown.")
        log.say("INFO:     Application shutdown complete.")
        engine.say_killing(with_parent=False)
        engine.kill_children()
        raise SystemExit(1) from None


def _running_phase_signals(engine: Engine) -> None:
    """From the first request on: SIGTERM drains, SIGQUIT of a child is looked into before the end."""

    def terminated(signum: object = None, frame: object = None) -> None:
        log.say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        engine.events.put("sigterm")

    def child_failed(*_: object) -> None:
        log.say("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
        engine.frozen.set()
        engine.events.put("sigquit")

    if engine.launch.fault.name != "ignore_sigterm":
        signal.signal(signal.SIGTERM, terminated)
    signal.signal(signal.SIGQUIT, child_failed)


def _warm_up(engine: Engine, server: Server) -> None:
    """The server's own first requests; only then it is ready."""
    launch = engine.launch
    server.first_request.set()
    if launch.fault.name == "hang_warmup":
        return
    if not launch.args["skip_server_warmup"]:
        time.sleep(settings.scaled(0.1))
        log.access(("127.0.0.1", 58404), "GET /model_info", 200, "OK")
        inbox = engine.generate("warmup", [9706, 6722, 315, 9822, 374], 8, counted=False)
        while "all" not in inbox.get():
            pass
        engine.forget("warmup")
        log.access(("127.0.0.1", 58420), "POST /generate", 200, "OK")
    log.say("The server is fired up and ready to roll!")
    engine.ready = True
    if launch.fault.name == "log_flood":
        _flood(int(launch.fault.number(200)))


def _flood(megabytes: int) -> None:
    """The log grows by 100 MB per second, and stops at a limit."""
    line = ("\rDecode batch, #running-req: 1, nothing to see here " + "x" * 950).encode()
    for _ in range(megabytes * 10):
        log.raw((line + b"\n") * 99)
        time.sleep(0.001)


def _handle(engine: Engine, server: Server, event: str) -> None:
    if event == "sigquit":
        _diagnose(engine)
        engine.kill_tree()
    if event == "sigterm":
        server.draining = True
        _drain(engine)
    server.socket.close()
    if event == "sigterm" and engine.launch.version >= (0, 5, 20):
        engine.say_killing(with_parent=False)
        engine.kill_children()
    if event == "sigint" or engine.launch.version >= (0, 5, 20):
        log.say("INFO:     Shutting down")
        log.say("INFO:     Waiting for application shutdown.")
        log.say("INFO:     Application shutdown complete.")
        log.say(f"INFO:     Finished server process [{os.getpid()}]")
        engine.say_killing(with_parent=False)
        engine.kill_children()
        raise SystemExit(0)
    engine.kill_tree()


def _diagnose(engine: Engine) -> None:
    """What comes between a dead child and the end, since 0.5.15: 5 s, and 60 s more while any scheduler lives."""
    if engine.launch.version < (0, 5, 15):
        return
    log.say("Sleeping 5 seconds before crash diagnostics to let GPU activity settle.")
    time.sleep(settings.waited(5))
    if not engine.schedulers_alive():
        log.say("No live scheduler processes found; skipping py-spy and CUDA coredump.")
        return
    log.say(
        "CUDA user-triggered coredump is not enabled. Set CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1 before CUDA "
        "initialization."
    )
    log.say("Waiting 60.0 seconds for CUDA coredumps before exiting.")
    time.sleep(settings.waited(60))


def _drain(engine: Engine) -> None:
    """Wait without limit for the requests of clients; then ask the ranks to end (since 0.5.15)."""
    while True:
        time.sleep(settings.scaled(0.2))
        if engine.unhealthy:
            log.say("Signal SIGTERM received while health check failed. Force exiting.")
            return
        rids = engine.open_requests
        left = f"Remaining number of requests {len(rids)}. Remaining requests remaining_rids={rids}."
        log.say(f"Gracefully exiting... {left}")
        if not rids:
            break
    if engine.launch.version >= (0, 5, 15):
        engine.end_ranks()
