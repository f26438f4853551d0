"""A night in which things break: the server dies, the link is cut or goes dead.

`python -m tests.sglang.breaks` prints how soon each is noticed and what it costs; the outcomes are tests too.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from sweeper.records import LaunchRecord, RequestResult
from tests.fakes import RecordingView
from tests.gpu_host.host import make_host
from tests.sglang.faults import class_of
from tests.sglang.night import Night, night, sshd_path
from tests.ssh.proxy import Proxy
from tests.ssh.sshd import Sshd


@dataclass
class Watching(RecordingView):
    """Notes when each phase began, and does something once a measured request is done."""

    after_request: Callable[[], None] = lambda: None
    phases: dict[str, float] = field(default_factory=dict)
    done: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def phase(self, name: str) -> None:
        self.phases[name] = time.monotonic()

    def request_done(self, result: RequestResult, done: int, total: int) -> None:
        if result.repeat >= 0 and not self.done:
            self.done = True
            self.after_request()


@dataclass(frozen=True)
class Broken:
    """A launch in which something broke: its record, how long after that it was noticed, how long it all took."""

    record: LaunchRecord
    noticed_s: float
    whole_s: float


def break_in_mid_benchmark(dark: Night, act: Callable[[], None], noticed: Callable[[Watching], float]) -> Broken:
    """A launch; `act` is done in another thread 0.2 s after its first measured request."""
    acted: list[float] = []

    def later() -> None:
        time.sleep(0.2)
        acted.append(time.monotonic())
        act()

    view = Watching(after_request=lambda: threading.Thread(target=later).start())
    was, began = dark.rig, time.monotonic()
    dark.rig = replace(was, view=view)
    record = dark.eagle3()
    dark.rig = was
    return Broken(record, noticed(view) - acted[0], time.monotonic() - began)


def stopping(view: Watching) -> float:
    """The moment the benchmark was given up."""
    return view.phases["stopping"]


def server_pid(dark: Night) -> int:
    """The main process of the server that runs now: the parent of those that hold GPU memory."""
    holder = min(dark.host.gpu_pids())
    fields = Path(f"/proc/{holder}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[1])


def kill_server(dark: Night) -> Broken:
    """SIGKILL to the server's main process in the middle of a request."""
    return break_in_mid_benchmark(dark, lambda: os.kill(server_pid(dark), signal.SIGKILL), stopping)


def break_link(dark: Night, proxy: Proxy, seconds: float, *, silently: bool) -> Broken:
    """The link is cut, or goes dead without a word, and stands again after `seconds`."""
    known, moments = dark.launcher.num_breaks(), []

    def act() -> None:
        until = time.monotonic() + seconds
        (proxy.freeze if silently else proxy.cut)()
        while dark.launcher.num_breaks() == known and time.monotonic() < until + 60:
            time.sleep(0.02)
        moments.append(time.monotonic())
        time.sleep(max(0.0, until - time.monotonic()))
        proxy.heal()

    return break_in_mid_benchmark(dark, act, lambda _: moments[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cut", type=float, default=60.0, help="seconds for which the link is gone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        host = make_host(folder / "gpu-host", time_scale="0.01", wait_scale="0.05")
        with Sshd(folder / "sshd", env={"PATH": sshd_path(host)}) as sshd, Proxy(sshd.port) as proxy:
            through = f"host.ssh.port={proxy.port}"
            with night(host, sshd, folder, through, "workload.max_tokens=160") as dark:
                for what, broken in (
                    ("server killed in mid-request", kill_server(dark)),
                    (f"link cut for {arguments.cut:g} s", break_link(dark, proxy, arguments.cut, silently=False)),
                    ("link dead without a word", break_link(dark, proxy, arguments.cut, silently=True)),
                ):
                    say(what, broken)
                left = dark.left_behind() or "nothing"
                print(f"servers started: {host.num_launches()} for 3 launches; left: {left}")


def say(what: str, broken: Broken) -> None:
    """One line."""
    proved = "proved" if broken.record.proof.complete else "NOT PROVED"
    outcome = f"{class_of(broken.record)}, {proved}"
    print(f"{what}: noticed after {broken.noticed_s:.2f} s; {outcome} ({broken.whole_s:.0f} s)")


if __name__ == "__main__":
    main()
