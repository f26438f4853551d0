"""What the load's own client costs, and how far its figures are from the server's own.

A stand-in server in a process of its own writes exactly RATE pieces a second on each stream and says how long
that took. Two clients measure it in turn: `host`, the one that specsweep sends to the server's host; `forward`,
what would be done otherwise: requests in threads of this process, through the SSH connection to a real sshd.

below: by how much the client's throughput (all tokens over the requests' own times) lies below the server's own.
late p99: the 99th percentile by which a piece arrives after its turn, by the pace of its own stream. CPU: of the
client, in percent of a core; the forward's includes SSH on this side only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from launchers.clock import SystemClock
from launchers.host import HostLauncher, HostSettings
from launchers.shell import LocalShell
from launchers.ssh import SshShell
from sweeper.engines.base import HttpRequest, StreamedResponse
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.http import Target, send
from sweeper.measuring.figures import percentile_99
from sweeper.measuring.host_load import Arrivals, HostLoad
from tests.ssh.sshd import Sshd

STREAMS = (1, 16, 64)
RATES = (40, 150)
Client = Callable[[Sequence[HttpRequest]], tuple[list[StreamedResponse], float]]
"""Sends all requests at once; the answers, and the CPU seconds that it took."""


@dataclass(frozen=True)
class Row:
    """What one client saw of one load."""

    num_streams: int
    rate: int
    client: str
    server_throughput: float
    below_pct: float
    late_p99_ms: float
    cpu_pct: float


@contextmanager
def serving(rate: int) -> Iterator[int]:
    """The port of a stand-in server in a process of its own."""
    argv = [sys.executable, "-m", "tests.host_load.streaming", str(rate)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def from_host(port: int, folder: Path) -> Client:
    """The client that is sent to the host."""
    launcher = HostLauncher(LocalShell(), HostSettings("here", str(folder)))
    load = HostLoad(launcher, (sys.executable,), "127.0.0.1", port, str(folder))

    def run(requests: Sequence[HttpRequest]) -> tuple[list[StreamedResponse], float]:
        report = load.send_all(requests, Arrivals(len(requests)), 300.0)
        return [exchange.response() for exchange in report.exchanges], report.cpu_s

    return run


def through_forward(url: str) -> Client:
    """Requests in threads of this process, through the forwarded port."""

    def run(requests: Sequence[HttpRequest]) -> tuple[list[StreamedResponse], float]:
        answers: dict[int, StreamedResponse] = {}

        def ask(index: int) -> None:
            answers[index] = send(Target(url), requests[index], 300.0, SystemClock())

        threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(requests))]
        cpu_s = time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [answers[index] for index in range(len(requests))], time.process_time() - cpu_s

    return run


def row(num_streams: int, rate: int, name: str, client: Client, seconds: float) -> Row:
    """Measure once."""
    count = round(rate * seconds)
    request = HttpRequest("POST", "/v1/chat/completions", {"max_tokens": count})
    responses, cpu_s = client([request] * num_streams)
    answers = [LlamaCpp().parse(response) for response in responses]
    client_ms = sum(response.e2e_latency_ms for response in responses)
    server_ms = sum(answer.server_decode_ms or 0 for answer in answers)
    late = [
        at_ms - answer.chunk_ms[0] - number * (answer.server_decode_ms or 0) / count
        for answer in answers
        for number, at_ms in enumerate(answer.chunk_ms)
    ]
    wall_s = max(response.e2e_latency_ms for response in responses) / 1000
    return Row(
        num_streams,
        rate,
        name,
        num_streams * count * 1000 / (server_ms / num_streams),
        100 * (1 - server_ms / client_ms),
        percentile_99(late),
        100 * cpu_s / wall_s,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each stream is")
    seconds = parser.parse_args().seconds
    print("streams  tok/s each  client   server tok/s   below     late p99   CPU")
    with tempfile.TemporaryDirectory() as directory, Sshd(Path(directory) / "sshd") as sshd:
        shell = SshShell(sshd.target(), "here")
        for rate in RATES:
            with serving(rate) as port:
                clients = {
                    "host": from_host(port, Path(directory)),
                    "forward": through_forward(f"http://{shell.address(port)}"),
                }
                for num_streams in STREAMS:
                    for name, client in clients.items():
                        show(row(num_streams, rate, name, client, seconds))
        shell.close()


def show(found: Row) -> None:
    """Print one line of the table."""
    print(
        f"{found.num_streams:7d}  {found.rate:10d}  {found.client:7s}  {found.server_throughput:12,.1f}  "
        f"{found.below_pct:6.2f} %  {found.late_p99_ms:6.1f} ms  {found.cpu_pct:5.1f} %",
        flush=True,
    )


if __name__ == "__main__":
    main()
