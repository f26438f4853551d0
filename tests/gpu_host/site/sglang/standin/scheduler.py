"""A scheduler process: rank 0 decodes at the planted speed, the others hold their GPU and wait."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from . import decoding, failures, graphs, log, orphans, settings, titles
from .failures import ServerError
from .launch import Launch, Link
from .startup import Startup

FAILS_WHILE_DECODING = {
    "crash_mid_benchmark": "RuntimeError: CUDA error: unspecified launch failure" + failures.CUDA_HINT,
    "illegal_memory_access": failures.ILLEGAL_ACCESS,
}
GONE = (
    "[rank0]:[W1129 18:30:52.646784901 ProcessGroupNCCL.cpp:1575] Warning: WARNING: destroy_process_group() was "
    "not called before program exit, which can leak resources. For more info, please see "
    "https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())"
)


def main(rank: int, control: int, output: int) -> None:
    """Start, report to the parent, serve until told to end. A failure is logged and sent on as SIGQUIT."""
    settings.end_in_time()
    link = Link.of(control)
    first = link.receive()
    if first is None:
        return
    launch = Launch.from_json(first)
    parallel = launch.args["tp_size"] > 1
    global_rank = launch.args["node_rank"] * launch.num_ranks + rank
    titles.set_title(f"sglang::scheduler_TP{global_rank}" if parallel else "sglang::scheduler")
    titles.die_with_parent()
    log.label(f"TP{global_rank}" if parallel else "")
    peers: list[int] = []
    try:
        start = Startup(launch, rank, link)
        info = start.run()
        if rank == 0:
            orphans.leave_behind(launch, start)
        link.send({"ready": info})
        _serve(decoding.Decoder(launch, Link.of(output), info) if rank == 0 else None, peers, link)
    except EOFError:
        return
    except (ServerError, IndexError) as error:
        _fail(error, [] if launch.fault.detail == "one" else peers)


def _fail(error: ServerError | IndexError, peers: list[int]) -> None:
    """Log it and tell the parent; an error while serving takes the other ranks along, as NCCL would."""
    no_gpu = "torch.AcceleratorError: CUDA error: invalid device ordinal\n"
    cause = error.traceback() if isinstance(error, ServerError) else no_gpu
    log.say(f"Scheduler hit an exception: {cause}")
    for pid in peers:
        os.kill(pid, signal.SIGABRT)
    os.kill(os.getppid(), signal.SIGQUIT)
    time.sleep(0.05)  # the signal comes before the end of this process is noticed
    raise SystemExit(1)


def _serve(decoder: decoding.Decoder | None, peers: list[int], link: Link) -> None:
    while True:
        message = link.receive(decoder.wait_s() if decoder else None)
        if message is None:
            if decoder is not None:
                _all_reduce(peers)
                _misbehave(decoder, link)
                decoder.step()
        elif "shutdown" in message:
            if decoder is not None:
                log.raw(GONE)
            return
        elif "peers" in message:
            peers += [pid for pid in message["peers"] if pid != os.getpid()]
        elif decoder is not None:
            if "generate" in message and (cause := graphs.mismatch(decoder.launch)):
                raise ServerError(failures.SERVING, cause)
            decoder.handle(message, link)
        if decoder is not None and decoder.changed:
            decoder.changed = False
            link.send({"stats": decoder.stats()})


def _all_reduce(peers: list[int]) -> None:
    """Wait for the other ranks, as every step of a real server does: a stopped or dead one holds up all."""
    while any(_absent(pid) for pid in peers):
        time.sleep(0.05)


def _absent(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"Z", b"X")
    except OSError:
        return True


def _misbehave(decoder: decoding.Decoder, link: Link) -> None:
    """The faults that come in the middle of the n-th request (the second, unless the fault says otherwise)."""
    fault = decoder.launch.fault
    if fault.name not in _ACTIONS or not decoder.in_the_middle_of(
        int(fault.number(2)) if fault.detail != "one" else 2
    ):
        return
    action = _ACTIONS[fault.name]
    if action == "raise":
        raise ServerError(failures.SERVING, FAILS_WHILE_DECODING[fault.name])
    if action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action == "watchdog":
        _watchdog(decoder)
    else:
        link.send({"do": action})
    decoder.misbehaved = True


def _watchdog(decoder: decoding.Decoder) -> None:
    limit = decoder.launch.args["watchdog_timeout"]
    time.sleep(settings.waited(limit))
    log.say(f"Scheduler debug info:\ncur_batch.batch_size()={decoder.num_running} cur_batch.reqs=[...]")
    log.say(f"Scheduler watchdog timeout (self.watchdog_timeout={limit}, self.soft=False)")
    time.sleep(settings.waited(5))
    os.kill(os.getppid(), signal.SIGQUIT)
    time.sleep(30)


_ACTIONS: dict[str, str] = {
    "crash_mid_benchmark": "raise",
    "illegal_memory_access": "raise",
    "scheduler_stopped": "stop",
    "watchdog": "watchdog",
    "detokenizer_killed": "kill detokenizer",
    "server_killed_mid_benchmark": "kill server",
}
