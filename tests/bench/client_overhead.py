"""How far the throughput that specsweep measures at one stream is from the server's own figure.

A stand-in server in a process of its own writes RATE tokens a second, exactly, one piece a token, and says of each
request how long it took. It is measured as any server is: warm-ups, passes, counters between the requests.

below: by how much the measured output throughput lies below the server's own. request: what that is per request.
CPU: of specsweep while it measured, in percent of a core. `itl p99`: the server's own gap is 1000 / RATE.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from launchers.clock import SystemClock
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.http import Target
from sweeper.measuring.benchmark import Bench, measure
from sweeper.records import Measurement
from sweeper.spec import ServerConfig
from sweeper.workload_spec import Prompt, WorkloadSpec
from tests.fakes import load_of

RATES = (40, 150, 400)
LIMIT_PCT = 0.5
"""How far the throughput may be off at 150 tokens a second."""


@contextmanager
def serving(rate: int) -> Iterator[Target]:
    """The stand-in server."""
    argv = [sys.executable, "-m", "tests.host_load.streaming", str(rate)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Target(f"http://127.0.0.1:{int(process.stdout.readline())}")
        process.kill()


def measured(rate: int, seconds: float) -> tuple[Measurement, float]:
    """Five requests of so many seconds each, and the share of a core that measuring them took, in percent."""
    workload = WorkloadSpec(
        name="one stream",
        prompts=tuple(Prompt(id=str(n), text=f"Question {n}") for n in range(5)),
        max_tokens=max(1, round(rate * seconds)),
        repeats=1,
        temperature=0,
        seed=0,
        request_timeout_s=600,
    )
    with serving(rate) as target:
        began_s, cpu_s = time.perf_counter(), time.process_time()
        found = measure(
            target, load_of(workload), Bench(LlamaCpp(), SystemClock(), lambda *_: None, ServerConfig())
        )
        return found, 100 * (time.process_time() - cpu_s) / (time.perf_counter() - began_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each request")
    seconds = parser.parse_args().seconds
    print("  tok/s  server's own   measured   below      request   itl p99   CPU    doubts")
    for rate in RATES:
        found, cpu_pct = measured(rate, seconds)
        server_ms = [request.server_e2e_ms for request in found.requests if request.server_e2e_ms]
        own = found.metrics["num_output_tokens"] * 1000 / sum(server_ms)
        seen = found.metrics["output_throughput"]
        extra_ms = sum(request.e2e_latency_ms for request in found.requests) - sum(server_ms)
        print(
            f"{rate:7d}  {own:10.3f}  {seen:10.3f}  {100 * (1 - seen / own):6.3f} %  "
            f"{extra_ms / len(server_ms):+6.2f} ms  {found.metrics['itl_p99_ms']:6.2f} ms  {cpu_pct:4.1f} %  "
            f"{'; '.join(found.doubts) or 'none'}"
        )
        if rate == 150 and abs(1 - seen / own) * 100 > LIMIT_PCT:
            raise SystemExit(f"the throughput is more than {LIMIT_PCT} % off")


if __name__ == "__main__":
    main()
