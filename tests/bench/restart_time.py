"""specsweep's own time between two servers: the stop is proved, the host looked at, the next server launched.

Over a real sshd on the loopback address, beside a shell script that does the same steps through `ssh`: look at the
GPUs and the port, start in a session of its own, note the pid, stop by the pid, wait until it is gone. Both in
turn, `--repeats` times. The server is one that serves at once, so that none of its own time is counted.

`--study DIR NAME` reads a finished sweep instead: what passed between a server that was proved gone and the next.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from launchers.base import LaunchSpec, ServerHandle
from launchers.host import HostLauncher, HostSettings
from launchers.ssh import SshShell
from sweeper.records import duration_s
from sweeper.storing.storage import StudyStore
from tests.launchers.conftest import unused_port
from tests.ssh.sshd import Sshd

SERVER = """
import socket, sys
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    listening.accept()[0].close()
"""

BARE = r"""
set -u
port=$1 folder=$2; shift 2
if [ -s "$folder/pid" ]; then # the old one goes
  read -r pid < "$folder/pid"
  kill -TERM "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
fi
nvidia-smi --query-gpu=memory.used --format=csv,noheader 2>/dev/null
awk -v p="$(printf ':%04X$' "$port")" '$2 ~ p && $4 == "0A" { exit 1 }' /proc/net/tcp || exit 9
setsid "$@" < /dev/null >> "$folder/log" 2>&1 &
echo $! > "$folder/pid"
"""


def two_ports() -> tuple[int, int]:
    """Two different ports that nothing listens on."""
    first = unused_port()
    return first, next(port for port in iter(unused_port, None) if port != first)


def own(launcher: HostLauncher, port: int, handle: ServerHandle | None) -> tuple[float, float, ServerHandle]:
    """One restart by specsweep: seconds from proved stop to next launch, seconds in all, the new server."""
    asked = time.perf_counter()
    if handle is not None:
        launcher.stop(handle, grace_s=5)
    began = time.perf_counter()
    launcher.settle()  # after the stop
    launcher.settle()  # before the start
    launcher.free_port()
    argv = (sys.executable, "-I", "-S", "-c", SERVER, str(port))
    started = launcher.start(LaunchSpec(argv, port, secrets.token_hex(8)))
    now = time.perf_counter()
    wait_for(port)
    return now - began, now - asked, started


def bare(sshd: Sshd, port: int, folder: Path) -> float:
    """One restart by ssh and a shell script: seconds from the command to its end."""
    program = [sys.executable, "-I", "-S", "-c", SERVER, str(port)]
    quoted = " ".join(f"'{word}'" for word in ["sh", "-s", str(port), str(folder), *program])
    ssh = ["ssh", "-F", str(sshd.config("bench")), "bench", quoted]
    began = time.perf_counter()
    subprocess.run(ssh, input=BARE, text=True, check=True, capture_output=True, timeout=60)
    spent = time.perf_counter() - began
    wait_for(port)
    return spent


def wait_for(port: int) -> None:
    """Until something answers there."""
    for _ in range(1000):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            time.sleep(0.01)
        else:
            return
    raise SystemExit(f"nothing answers at port {port}")


def compare(repeats: int) -> None:
    """Print both, in turn."""
    if shutil.which("ssh") is None:
        raise SystemExit("the command ssh is needed (openssh-client)")
    with tempfile.TemporaryDirectory() as name, Sshd(Path(name) / "sshd") as sshd:
        folder, port, other = Path(name), *two_ports()
        shell = SshShell(sshd.target(), "bench")
        launcher = HostLauncher(shell, HostSettings("bench", str(folder / "state"), port, port))
        between: list[float] = []
        ours: list[float] = []
        theirs: list[float] = []
        handle: ServerHandle | None = None
        with launcher.hold():
            try:
                for _ in range(repeats + 1):
                    gap, spent, handle = own(launcher, port, handle)
                    between.append(gap)
                    ours.append(spent)
                    theirs.append(bare(sshd, other, folder))
            finally:
                if handle is not None:
                    launcher.stop(handle, grace_s=5)
                subprocess.run(["sh", "-c", 'kill -TERM "$(cat "$1")"', "sh", str(folder / "pid")], check=False)
        say("specsweep, stop proved to next launched", between[1:])
        say("specsweep, stop and next launch", ours[1:])
        say("ssh and a shell script, stop and next launch", theirs[1:])
        print(f"ratio of the medians: {statistics.median(ours[1:]) / statistics.median(theirs[1:]):.2f}")


def say(what: str, seconds: list[float]) -> None:
    """One line: median, least, most."""
    middle = statistics.median(seconds)
    print(f"{what}: median {middle:.3f} s, min {min(seconds):.3f} s, max {max(seconds):.3f} s ({len(seconds)})")


def read_study(directory: str, name: str) -> None:
    """The same from a sweep's records: the record is written, told, shown, and the next server is launched."""
    store = StudyStore.open(f"sqlite:///{directory}/optuna.db", name, directory, create=False)
    launches = sorted((n for t in store.trials() for n in t.launches), key=lambda launch: launch.started_at)
    gaps = []
    for launch, following in pairwise(launches):
        before = [p.duration_s for p in following.phases if p.name in ("check", "launch")]
        gaps.append(duration_s(launch.ended_at, following.started_at) + sum(before))
    say(f"study {name}, server proved gone to next launched", gaps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--study", nargs=2, metavar=("DIR", "NAME"), help="a sweep that ran in one go")
    arguments = parser.parse_args()
    if arguments.study:
        read_study(*arguments.study)
    else:
        compare(arguments.repeats)


if __name__ == "__main__":
    main()
