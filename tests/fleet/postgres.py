"""A real PostgreSQL for tests: a cluster of its own in a temporary folder, on a free loopback port."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql")
USER, PASSWORD = "sweeps", "only for tests"


def programs() -> Path | None:
    """The folder of the newest installed server's programs; None without one."""
    found = sorted(PROGRAMS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@dataclass(frozen=True)
class Cluster:
    """A running server. Only who gives the password gets in."""

    programs: Path
    folder: Path
    port: int
    settings: tuple[str, ...] = ("synchronous_commit=off",)

    def url(self, database: str) -> str:
        """The address of a database, with the password."""
        return f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        """A new database; its address."""
        self.sql(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """What the server answers to one statement, without headings."""
        argv = [str(self.programs / "psql"), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", statement]
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database]
        env = {**os.environ, "PGPASSWORD": PASSWORD}
        return subprocess.run([*argv, *where], env=env, capture_output=True, text=True, check=True).stdout.strip()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.control("start", "-w", "-l", str(self.folder / "log"), "-o", self._options())

    def stop(self, mode: str = "fast") -> None:
        """Stop it; connections are cut. `immediate` is as a crash: it recovers at the next start."""
        self.control("stop", "-w", "-m", mode)

    @property
    def is_running(self) -> bool:
        """Whether its first process lives."""
        return bool(self.pid) and Path(f"/proc/{self.pid}").exists()

    @property
    def pid(self) -> int:
        """Of its first process; 0 for one that was stopped."""
        file = self.folder / "data" / "postmaster.pid"
        return int(file.read_text().splitlines()[0]) if file.exists() else 0

    def kill(self) -> None:
        """SIGKILL to its processes, the first one first: as if its machine were gone."""
        first = self.pid
        family = [first, *_children(first)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(_is_alive, family)):
            time.sleep(0.02)

    def control(self, *words: str) -> None:
        """Call pg_ctl, as a user that may run a server."""
        run_unprivileged([str(self.programs / "pg_ctl"), "-D", str(self.folder / "data"), *words])

    def _options(self) -> str:
        chosen = ("fsync=off", "max_connections=60", "shared_buffers=16MB", *self.settings)
        words = " ".join(f"-c {setting}" for setting in chosen)
        return f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' {words}"


@contextmanager
def cluster(*settings: str) -> Iterator[Cluster]:
    """A cluster while open; nothing of it is left. `settings`: NAME=VALUE; none: the fastest."""
    found = programs()
    assert found is not None
    folder = Path(tempfile.mkdtemp(prefix="specsweep-postgres-"))
    try:
        secret = folder / "secret"
        secret.write_text(PASSWORD, encoding="utf-8")
        give_away(folder)
        made = Cluster(found, folder, free_port(), settings or Cluster.settings)
        words = ["-D", str(folder / "data"), "-U", USER, "--pwfile", str(secret), "-A", "scram-sha-256", "-N"]
        run_unprivileged([str(found / "initdb"), *words, "--locale=C", "-E", "UTF8"])
        made.start()
        try:
            yield made
        finally:
            if made.is_running:
                made.stop("immediate")
    finally:
        shutil.rmtree(folder)


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def _is_alive(pid: int) -> bool:
    """Whether it is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] not in "ZX"
    except OSError:
        return False


def run_unprivileged(argv: list[str]) -> None:
    """Run a program to its end; as root that is done as `postgres`, since a server refuses root."""
    user = "postgres" if os.getuid() == 0 else None
    with tempfile.TemporaryFile() as output:  # a pipe would stay open as long as the server runs
        done = subprocess.run(argv, user=user, group=user, extra_groups=[] if user else None, cwd="/",
                              stdout=output, stderr=output, stdin=subprocess.DEVNULL)  # fmt: skip
        output.seek(0)
        assert done.returncode == 0, output.read().decode(errors="replace")


def give_away(folder: Path) -> None:
    """Let the user that runs the server use a folder of ours."""
    if os.getuid() == 0:
        account = pwd.getpwnam("postgres")
        for path in (folder, *folder.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
