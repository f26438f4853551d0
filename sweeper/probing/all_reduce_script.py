"""Times all-reduces between the GPUs of one host, and prints one line for each size of the message.

commands.py sends this one file as text to the host, where the server's own Python runs it (`python -c TEXT JOB`):
it needs the torch that the server has, and nothing else. One process per GPU, as the server has them, and all
sizes in them: what takes time is the start, not the timing.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any, NoReturn

WARMUP = 20
ROUNDS = 3
PER_ROUND = 40
HEAD_START_CYCLES = 50_000_000
"""About 25 ms of a GPU: PER_ROUND all-reduces are in its queue by then, and none waits for Python."""

BYTES_PER_NUMBER = 2
LOG_BYTES = 4096


def main() -> None:
    """Run one process per rank. The first one that fails ends the others, and this with exit code 1."""
    job = json.loads(sys.argv[1])
    living = {start_rank(rank, job) for rank in range(job["num_ranks"])}
    while living:
        pid, status = os.wait()
        living.discard(pid)
        if status != 0:
            for other in living:
                os.kill(other, signal.SIGKILL)
            raise SystemExit(1)


def start_rank(rank: int, job: dict[str, Any]) -> int:
    """A process for one rank, forked before torch is loaded; its pid."""
    pid = os.fork()
    if pid == 0:
        run_rank(rank, job)
    return pid


def run_rank(rank: int, job: dict[str, Any]) -> NoReturn:
    """Time all sizes, then end, whatever happens."""
    code = 1
    try:
        time_all(rank, job)
        code = 0
    finally:
        if code:  # whatever it was must be seen in the log, in one go: the other ranks fail, too
            os.write(2, traceback.format_exc().encode()[-LOG_BYTES:])
        os._exit(code)


def time_all(rank: int, job: dict[str, Any]) -> None:
    """Join the others, then time each size. The first rank prints."""
    import torch  # type: ignore[import-not-found]
    import torch.distributed as dist  # type: ignore[import-not-found]

    on_gpus = job["backend"] == "nccl"
    if on_gpus:
        torch.cuda.set_device(rank)
    dist.init_process_group(
        job["backend"],
        init_method=f"tcp://127.0.0.1:{job['port']}",
        rank=rank,
        world_size=job["num_ranks"],
        timeout=timedelta(seconds=job["timeout_s"]),
    )
    for num_bytes in job["sizes_bytes"]:
        # Zeros stay zeros, however often they are added up.
        device = f"cuda:{rank}" if on_gpus else "cpu"
        tensor = torch.zeros(num_bytes // BYTES_PER_NUMBER, dtype=torch.float16, device=device)

        def reduce(tensor: Any = tensor) -> None:  # noqa: ANN401  (a tensor of a library that is loaded late)
            dist.all_reduce(tensor)

        for _ in range(WARMUP):
            reduce()
        took = [
            us for _ in range(ROUNDS) for us in (gpu_round(torch, dist, reduce) if on_gpus else cpu_round(reduce))
        ]
        if rank == 0:
            told = {"bytes": num_bytes, "us": round(statistics.median(took), 3)}
            print(f"\nspecsweep-all-reduce {json.dumps(told)}", flush=True)  # noqa: T201  (its way to tell)
    dist.destroy_process_group()


def gpu_round(torch: Any, dist: Any, reduce: Callable[[], None]) -> list[float]:  # noqa: ANN401
    """Microseconds of each of PER_ROUND all-reduces, by the GPU's own clock.

    The GPU is kept busy until all of them are in its queue: launched one by one they would show how long Python
    takes to launch them, which a server's CUDA graph does not.
    """
    dist.barrier()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(PER_ROUND + 1)]
    torch.cuda._sleep(HEAD_START_CYCLES)
    marks[0].record()
    for mark in marks[1:]:
        reduce()
        mark.record()
    torch.cuda.synchronize()
    return [1000 * begin.elapsed_time(end) for begin, end in pairwise(marks)]


def cpu_round(reduce: Callable[[], None]) -> list[float]:
    """The same without a GPU, by the wall clock."""
    marks = [time.perf_counter()]
    for _ in range(PER_ROUND):
        reduce()
        marks.append(time.perf_counter())
    return [1e6 * (end - begin) for begin, end in pairwise(marks)]


if __name__ == "__main__":
    main()
