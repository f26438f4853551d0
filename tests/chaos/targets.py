"""The sweeps that are killed: one host, one that confirms, one that fails, over SSH, several workers."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sweeper.spec import TrackingSpec
from sweeper.tracking.place import ui_argv, ui_env
from tests.chaos.kills import Target
from tests.chaos.sweeps import Sweep, over_ssh
from tests.chaos.zygote import Zygote
from tests.fleet.postgres import Cluster, cluster
from tests.ssh.sshd import Sshd
from tests.tracking.conftest import answers, free_port, wait_until

SEARCH = ("budget.confirm_launches=0", "budget.baseline_every=100")
FAULTS = ("crash 1", "crash_start 1", "out_of_memory 1", "truncated 1", "http_500 1", "slow_start 1", "not_utf8 1")

Make = Callable[[Path, Zygote], AbstractContextManager[Target]]


@contextmanager
def single(folder: Path, zygote: Zygote) -> Iterator[Target]:
    yield Target("one host", Sweep(folder, zygote, words=SEARCH))


@contextmanager
def confirming(folder: Path, zygote: Zygote) -> Iterator[Target]:
    words = ("budget.confirm_launches=2", "budget.finalists=1", "budget.baseline_every=3")
    yield Target("one host, confirming", Sweep(folder, zygote, words=words))


@contextmanager
def failing(folder: Path, zygote: Zygote) -> Iterator[Target]:
    sweep = Sweep(folder, zygote, words=(*SEARCH, "limits.identical_failures=50"))

    def plant(rng: random.Random) -> None:
        name, detail = rng.choice(FAULTS).split()
        sweep.set_fault(name, detail, rng.choice((0, 1, 1, 2)))

    yield Target("one host, launches that fail", sweep, before_start=plant)


@contextmanager
def remote(folder: Path, zygote: Zygote) -> Iterator[Target]:
    with Sshd(folder / "sshd") as sshd:
        yield Target("over SSH", Sweep(folder, zygote, words=(*SEARCH, *over_ssh(sshd, folder))))


@contextmanager
def shared(folder: Path, zygote: Zygote) -> Iterator[Target]:
    with cluster() as postgres, mlflow_server(folder / "mlflow") as uri:
        sweep = shared_sweep(folder, zygote, postgres, uri)
        yield Target("PostgreSQL, 3 workers", sweep, hosts="abc")


TARGETS: dict[str, Make] = {
    "single": single,
    "confirming": confirming,
    "failing": failing,
    "ssh": remote,
    "postgres": shared,
}


def shared_sweep(folder: Path, zygote: Zygote, postgres: Cluster, uri: str, *more: str) -> Sweep:
    """A study in a database of its own; a lease of 5 s."""
    url = postgres.create(f"chaos_{abs(hash(str(folder))) % 10**9}")
    return Sweep(folder, zygote, storage=url, tracking=uri, words=(*SEARCH, "study.lease_s=5", *more))


@contextmanager
def mlflow_server(folder: Path, prefix: tuple[str, ...] = ()) -> Iterator[str]:
    """The address of a real MLflow server with a database of its own. `prefix`: words before its command line."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = TrackingSpec(uri=f"sqlite:///{folder}/mlflow.db", artifact_location=str(folder / "files"), sync_s=60.0)
    port = free_port()
    with (folder / "log").open("wb") as log:
        argv = [*prefix, *ui_argv(spec, "127.0.0.1", port)]
        process = subprocess.Popen(argv, env={**os.environ, **ui_env(spec)}, stdout=log, stderr=log,
                                   start_new_session=True)  # fmt: skip
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/health", process, folder / "log"), 240)
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
