"""A real Slurm on this machine: munged, slurmctld and a slurmd for each of two nodes, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.postgres import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd")
NODES = ("n1", "n2")
PATIENCE_S = 60.0
CONF = """\
ClusterName=specsweep
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthInfo=socket={folder}/munge,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
KillWait=10
SchedulerParameters=sched_min_interval=100000
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing() -> str:
    """Why there can be no cluster here; empty when there can."""
    if os.getuid() != 0:
        return "needs root"
    found = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    return f"needs {', '.join(found)}: apt-get install slurm-wlm" if found else ""


@dataclass(frozen=True)
class Slurm:
    """A running cluster. `env`: with which its commands, and specsweep, find it."""

    folder: Path
    env: dict[str, str]

    def ask(self, *argv: str) -> str:
        """What a command of Slurm's prints."""
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.strip()


@contextmanager
def slurm() -> Iterator[Slurm]:
    """A cluster while open; nothing of it is left."""
    folder = Path(tempfile.mkdtemp(prefix="specsweep-slurm-"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / "state").mkdir()
        key = folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        host = socket.gethostname().split(".")[0]
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=1" for name in NODES
        )
        conf = folder / "slurm.conf"
        conf.write_text(CONF.format(host=host, port=free_port(), folder=folder, nodes=nodes))
        made = Slurm(folder, {**os.environ, "SLURM_CONF": str(conf), "PATH": _path()})
        files = [f"--{kind}-file={folder}/munge.{kind}" for kind in ("pid", "log", "seed")]
        stack.enter_context(
            _daemon(made, ["munged", "-F", "--force", f"--key-file={key}", f"--socket={folder}/munge", *files])
        )
        _until(lambda: (folder / "munge").exists(), "munged")
        stack.enter_context(_daemon(made, ["slurmctld", "-D"]))
        for name in NODES:
            stack.enter_context(_daemon(made, ["slurmd", "-D", "-N", name]))
        _until(lambda: _are_idle(made), "idle nodes")
        yield made


def _are_idle(made: Slurm) -> bool:
    try:
        return made.ask("sinfo", "--noheader", "--Node", "--format=%T").split() == ["idle"] * len(NODES)
    except subprocess.CalledProcessError:
        return False


@contextmanager
def _daemon(made: Slurm, argv: Sequence[str]) -> Iterator[None]:
    with (made.folder / f"{argv[0]}-{Path(argv[-1]).name}.log").open("wb") as log:
        process = subprocess.Popen(argv, env=made.env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.1)


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"
